#include "arena/report/standings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "arena/predictions/predictions.hpp"
#include "arena/report/machines.hpp"
#include "core/printable.hpp"

namespace thresher::arena {
namespace {

/// The mode of the standings: warm where nothing was timed cold.
TimingMode headline_of(const std::vector<const Entry*>& entries) {
  const auto is_measured = [&](TimingMode mode) {
    return std::any_of(entries.begin(), entries.end(), [&](const Entry* entry) {
      return std::any_of(entry->measurements.begin(), entry->measurements.end(), [&](const Measurement& measurement) {
        return measurement.mode == mode && measurement.rounds > 0;
      });
    });
  };
  const auto found = std::find_if(headline_modes.begin(), headline_modes.end(), is_measured);
  return found == headline_modes.end() ? headline_modes.front() : *found;
}

std::string time_text(double us) {
  return us >= 1e6   ? fmt::format("{:.2f} s", us / 1e6)
         : us >= 1e3 ? fmt::format("{:.1f} ms", us / 1e3)
                     : fmt::format("{:.1f} us", us);
}

/// The interval of the geometric mean in the headline mode; 1 for a baseline.
struct Score {
  double value = 0;  ///< 0 when there is none
  std::string text;
};

Score score_of(const Entry& entry, TimingMode headline_mode) {
  if (entry.verdict == Verdict::baseline) {
    return {1, "1"};
  }
  for (const ModeSpeedup& speedup : entry.speedups) {
    if (speedup.mode == headline_mode) {
      const Estimate& mean = speedup.geomean;
      return {mean.value, fmt::format("{:.3f}x [{:.3f}, {:.3f}]", mean.value, mean.low, mean.high)};
    }
  }
  return {0, "-"};
}

using Row = std::vector<std::string>;

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += fmt::format(" {}{: <{}}", row[column], "", widths[column] - width_of(row[column]) + 1);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line;
    text += '\n';
  }
  return text;
}

std::string shape_of(const std::string& problem) { return problem.substr(0, problem.find(' ')); }

/// Shapes alone where they distinguish all problems, as in suites of one format.
std::vector<std::pair<std::string, std::string>> problem_columns(const std::vector<const Entry*>& entries,
                                                                 TimingMode headline_mode) {
  std::vector<std::pair<std::string, std::string>> columns;  // problem → heading
  std::set<std::string> shapes;
  for (const Entry* entry : entries) {
    for (const Measurement& measurement : entry->measurements) {
      const auto is_same = [&](const auto& column) { return column.first == measurement.problem; };
      if (measurement.mode == headline_mode && std::none_of(columns.begin(), columns.end(), is_same)) {
        columns.emplace_back(measurement.problem, measurement.problem);
        shapes.insert(shape_of(measurement.problem));
      }
    }
  }
  if (shapes.size() == columns.size()) {
    for (auto& [problem, heading] : columns) {
      heading = shape_of(problem);
    }
  }
  return columns;
}

/// For a merged run: a column with the shard and machine of each row.
void add_shards(const RunRecord& run, const std::vector<const Entry*>& entries, std::vector<Row>& rows) {
  rows.front().insert(rows.front().begin() + 1, "shard");
  for (std::size_t place = 0; place < entries.size(); ++place) {
    const MergedShard* const shard = run.merge->shard_of(entries[place]->ordinal);
    Row& row = rows[place + 1];
    row.insert(row.begin() + 1, shard == nullptr ? "-" : std::to_string(shard->number));
  }
}

std::string suite_standings(const RunRecord& run, const std::string& suite, std::vector<const Entry*> entries) {
  const TimingMode headline_mode = headline_of(entries);
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry* left, const Entry* right) {
    return score_of(*left, headline_mode).value > score_of(*right, headline_mode).value;
  });
  const auto columns = problem_columns(entries, headline_mode);
  std::vector<Row> rows{{"contestant", "verdict", columns.empty() ? "" : std::string(name(headline_mode))}};
  for (const auto& [problem, heading] : columns) {
    rows.front().push_back(printable(heading));
  }
  for (const Entry* entry : entries) {
    Row row{printable(entry->contestant), verdict_text(*entry),
            columns.empty() ? "" : score_of(*entry, headline_mode).text};
    for (const auto& [problem, heading] : columns) {
      std::string cell = "-";
      for (const Measurement& measurement : entry->measurements) {
        if (measurement.problem == problem && measurement.mode == headline_mode && measurement.rounds > 0) {
          cell = time_text(measurement.contestant_us.value);
          if (entry->verdict != Verdict::baseline) {
            cell += fmt::format(" ({})", time_text(measurement.baseline_us.value));
          }
        }
      }
      row.push_back(cell);
    }
    rows.push_back(row);
  }
  if (run.merge) {
    add_shards(run, entries, rows);
  }
  std::string text = fmt::format("{}\n{}", printable(suite), table(rows));
  if (!columns.empty()) {
    text += "  In brackets: the baseline in the same rounds.\n";
  }
  for (const Entry* entry : entries) {
    if (entry->verdict != Verdict::baseline) {
      text += fmt::format("  {}: {}: {}\n", printable(entry->contestant), plain_verdict(*entry),
                          printable(entry->sentence));
    }
  }
  return text;
}

}  // namespace

std::string standings(const RunRecord& run) {
  std::vector<std::string> suites;
  std::map<std::string, std::vector<const Entry*>> by_suite;
  for (const Entry& entry : run.entries) {
    if (!by_suite.contains(entry.suite)) {
      suites.push_back(entry.suite);
    }
    by_suite[entry.suite].push_back(&entry);
  }
  std::string text;
  for (const std::string& suite : suites) {
    text += text.empty() ? "" : "\n";
    text += suite_standings(run, suite, by_suite[suite]);
  }
  if (const std::string machines = machines_text(run); !machines.empty()) {
    text += fmt::format("{}{}", text.empty() ? "" : "\n", machines);
  }
  for (const std::string& more : {claims_text(run), prediction_quality_text(prediction_quality({&run, 1}))}) {
    text += more.empty() ? "" : "\n" + more;
  }
  return text;
}

}  // namespace thresher::arena
