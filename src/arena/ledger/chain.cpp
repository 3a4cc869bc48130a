// The ledger's chain: each new row gets the hash of itself and of the previous link. A later edit therefore shows, and
// the last hash covers everything before it.
#include <fmt/format.h>

#include <array>

#include "arena/ledger/ledger.hpp"
#include "arena/ledger/sha256.hpp"
#include "arena/ledger/statement.hpp"
#include "arena/results/record_json.hpp"

namespace thresher::arena {
namespace {

/// A kind of link, and the queries (by one number) for its rows.
struct Kind {
  const char* name;
  const char* ids;  ///< all numbers, in order of writing
  std::array<const char*, 4> rows;
};

constexpr std::array kinds{
    Kind{"run",
         "SELECT id FROM runs ORDER BY id",
         {"SELECT * FROM runs WHERE id = ?",
          "SELECT contexts.* FROM contexts JOIN runs ON runs.context = contexts.id WHERE runs.id = ?", nullptr,
          nullptr}},
    Kind{"prediction",
         "SELECT id FROM predictions ORDER BY id",
         {"SELECT * FROM predictions WHERE id = ?", nullptr, nullptr, nullptr}},
    Kind{"entry",
         "SELECT id FROM entries ORDER BY id",
         {"SELECT * FROM entries WHERE id = ?",
          "SELECT contexts.* FROM contexts JOIN entries ON entries.context = contexts.id WHERE entries.id = ?",
          "SELECT * FROM gates WHERE entry = ? ORDER BY ordinal",
          "SELECT * FROM measurements WHERE entry = ? ORDER BY ordinal"}},
    Kind{"end",
         "SELECT run FROM run_ends ORDER BY run",
         {"SELECT * FROM run_ends WHERE run = ?", nullptr, nullptr, nullptr}}};

std::string hash_of(const std::string& previous, std::int64_t id, const std::string& kind, std::int64_t row,
                    const std::string& content) {
  return sha256(fmt::format("{}\n{} {} {}\n{}", previous, id, kind, row, content));
}

}  // namespace

std::string Ledger::content(const std::string& kind, std::int64_t row) const {
  std::string all;
  for (const Kind& known : kinds) {
    for (const char* query : known.rows) {
      if (kind == known.name && query != nullptr) {
        Statement select(*this, query);
        select.bind(row);
        while (select.step()) {
          all += select.whole_row() + "\n";
        }
      }
    }
  }
  return all;
}

void Ledger::link(const std::string& kind, std::int64_t row) {
  std::int64_t id = 1;
  std::string previous;
  {
    Statement last(*this, "SELECT id, hash FROM chain ORDER BY id DESC LIMIT 1");
    if (last.step()) {
      id = last.integer() + 1;
      previous = last.text();
    }
  }
  Statement(*this, "INSERT INTO chain VALUES(?, ?, ?, ?)")
      .bind(id)
      .bind(kind)
      .bind(row)
      .bind(hash_of(previous, id, kind, row, content(kind, row)))
      .step();
}

void Ledger::link_all_rows() {
  for (const Kind& kind : kinds) {
    std::vector<std::int64_t> rows;
    Statement select(*this, kind.ids);
    while (select.step()) {
      rows.push_back(select.integer());
    }
    for (const std::int64_t row : rows) {
      link(kind.name, row);
    }
  }
}

std::string Ledger::describe(const std::string& kind, std::int64_t row) const {
  if (kind == "run" || kind == "end") {
    return fmt::format("the {} of run {}", kind == "run" ? "beginning" : "end", row);
  }
  const bool is_entry = kind == "entry";
  Statement select(*this, is_entry ? "SELECT run, suite, contestant FROM entries WHERE id = ?"
                                   : "SELECT run, problem, contestant FROM predictions WHERE id = ?");
  select.bind(row);
  if (!select.step()) {
    return fmt::format("{} {}", kind, row);
  }
  const std::int64_t run = select.integer();
  const std::string where = select.text();
  return fmt::format("the {} of {} on {} in run {}", is_entry ? "result" : "prediction", select.text(), where, run);
}

Verification Ledger::verify() const {
  Verification found;
  Statement select(*this, "SELECT id, kind, row, hash FROM chain ORDER BY id");
  while (select.step()) {
    const std::int64_t id = select.integer();
    const std::string kind = select.text();
    const std::int64_t row = select.integer();
    const std::string hash = select.text();
    const std::string now = content(kind, row);
    ++found.links;
    if (id != static_cast<std::int64_t>(found.links)) {
      found.faults.push_back(fmt::format("link {} is where link {} was: links were removed", id, found.links));
      found.links = static_cast<std::size_t>(id);
    }
    if (now.empty()) {
      found.faults.push_back(fmt::format("{} was removed after it was written", describe(kind, row)));
    } else if (hash != hash_of(found.head, id, kind, row, now)) {
      found.faults.push_back(fmt::format("{} was changed after it was written", describe(kind, row)));
    }
    found.head = hash;
  }
  find_unlinked(found);
  find_late_predictions(found);
  return found;
}

void Ledger::find_unlinked(Verification& found) const {
  for (const Kind& kind : kinds) {
    Statement select(*this, kind.ids);
    while (select.step()) {
      const std::int64_t row = select.integer();
      Statement linked(*this, "SELECT 1 FROM chain WHERE kind = ? AND row = ?");
      if (!linked.bind(std::string(kind.name)).bind(row).step()) {
        found.faults.push_back(fmt::format("{} was slipped in beside the chain", describe(kind.name, row)));
      }
    }
  }
}

void Ledger::find_late_predictions(Verification& found) const {
  Statement select(*this,
                   "SELECT predictions.id FROM predictions JOIN entries ON entries.run = predictions.run AND "
                   "entries.ordinal = predictions.ordinal JOIN chain AS p ON p.kind = 'prediction' AND p.row = "
                   "predictions.id JOIN chain AS e ON e.kind = 'entry' AND e.row = entries.id WHERE p.id > e.id");
  while (select.step()) {
    found.faults.push_back(
        fmt::format("{} was written after its measurement", describe("prediction", select.integer())));
  }
}

void Ledger::write_predictions(std::int64_t run, std::span<const PredictionRecord> predictions) {
  for (const PredictionRecord& prediction : predictions) {
    Statement(*this,
              "INSERT INTO predictions(run, ordinal, suite, contestant, problem, predicted_us, why, planner, panel, "
              "frozen) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(run)
        .bind(prediction.ordinal)
        .bind(prediction.suite)
        .bind(prediction.contestant)
        .bind(prediction.problem)
        .bind(prediction.predicted_us)
        .bind(prediction.why)
        .bind(prediction.planner)
        .bind(prediction.panel)
        .bind(prediction.frozen)
        .step();
    link("prediction", sqlite3_last_insert_rowid(database_));
  }
}

void Ledger::load_predictions(RunRecord& run) const {
  Statement select(*this,
                   "SELECT ordinal, suite, contestant, problem, predicted_us, why, planner, panel, frozen, "
                   "coalesce(hash, '') FROM predictions LEFT JOIN chain ON kind = 'prediction' AND row = "
                   "predictions.id WHERE run = ? ORDER BY predictions.id");
  select.bind(run.id);
  while (select.step()) {
    PredictionRecord& prediction = run.predictions.emplace_back();
    prediction.ordinal = select.integer();
    prediction.suite = select.text();
    prediction.contestant = select.text();
    prediction.problem = select.text();
    prediction.predicted_us = select.optional_real();
    prediction.why = select.text();
    prediction.planner = select.text();
    prediction.panel = select.text();
    prediction.opinion = panel_from_json(prediction.panel);
    prediction.frozen = select.text();
    prediction.hash = select.text();
  }
}

}  // namespace thresher::arena
