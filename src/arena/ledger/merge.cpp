#include "arena/ledger/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "arena/ledger/ledger.hpp"
#include "arena/results/shard_json.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// The run of a shard, with its owner.
struct HeldShard {
  RunRecord run;
  std::string ledger;
  [[nodiscard]] const ShardRecord& record() const { return *run.shard; }
  [[nodiscard]] std::string name() const { return fmt::format("shard {} in ledger {}", label(record().shard), ledger); }
};

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

void refuse_changed(const Ledger& ledger) {
  const std::vector<std::string> faults = ledger.verify().faults;
  if (!faults.empty()) {
    refuse(fmt::format("ledger {}: {}{}: nothing was merged", ledger.path().string(), faults.front(),
                       faults.size() == 1 ? "" : fmt::format(", and {} more", faults.size() - 1)));
  }
}

void refuse_named_twice(const std::vector<std::string>& ledgers) {
  for (std::size_t place = 0; place < ledgers.size(); ++place) {
    for (std::size_t other = 0; other < place; ++other) {
      if (std::error_code missing; fs::equivalent(ledgers[place], ledgers[other], missing)) {
        refuse(fmt::format("ledger {} is named twice: name it once", ledgers[place]));
      }
    }
  }
}

/// All shards in the ledgers, the unfinished too.
std::vector<HeldShard> shards_in(const std::vector<std::string>& ledgers) {
  std::vector<HeldShard> shards;
  for (const std::string& path : ledgers) {
    const Ledger ledger(path, Ledger::Access::read);
    refuse_changed(ledger);
    const std::size_t before = shards.size();
    for (const RunRecord& run : ledger.runs()) {
      if (run.shard) {
        shards.push_back({ledger.load(run.id), path});
      }
    }
    if (shards.size() == before) {
      refuse(fmt::format("ledger {} holds no shard: `thresher tournament --shard` holds one", path));
    }
  }
  return shards;
}

/// "cuda" for "cuda:1": the choice among a machine's GPUs makes no other tournament.
std::string kind_of_device(const std::string& device) { return device.starts_with("cuda:") ? "cuda" : device; }

/// Why the shard belongs to another tournament than the first; empty when it does not.
std::string difference(const RunRecord& shard, const RunRecord& first) {
  if (shard.context.source_hash != first.context.source_hash) {
    return fmt::format("another version of Thresher held it (sources {}, not {})", shard.context.source_hash,
                       first.context.source_hash);
  }
  if (shard.shard->shard.count != first.shard->shard.count) {
    return fmt::format("it is one of {} shards, not of {}", shard.shard->shard.count, first.shard->shard.count);
  }
  if (shard.seed != first.seed) {
    return fmt::format("its seed is {}, not {}", shard.seed, first.seed);
  }
  if (kind_of_device(shard.device) != kind_of_device(first.device)) {
    return fmt::format("its device is {}, not {}", shard.device, first.device);
  }
  const std::string differing = differing_argument(shard.arguments, first.arguments);
  return differing.empty() ? "" : fmt::format("its {} are others", differing);
}

void refuse_another_tournament(const HeldShard& shard, const HeldShard& first) {
  if (const std::string differing = difference(shard.run, first.run); !differing.empty()) {
    refuse(fmt::format("{} is of another tournament than {}: {}", shard.name(), first.name(), differing));
  }
}

/// Whether the entry belongs to that match of the tournament's list.
bool is_of(const Entry& entry, const MatchRecord& match) {
  return entry.suite == match.suite && entry.contestant == match.contestant && entry.baseline == match.baseline;
}

/// The entries of the matches that were dealt to the shard.
std::vector<Entry> own_entries(const HeldShard& shard) {
  const std::vector<MatchRecord>& matches = shard.record().matches;
  std::vector<Entry> entries;
  for (std::size_t place = 0; place < matches.size(); ++place) {
    if (matches[place].shard != shard.record().shard.number) {
      continue;
    }
    const auto found = std::find_if(shard.run.entries.begin(), shard.run.entries.end(), [&](const Entry& entry) {
      return entry.ordinal == static_cast<std::int64_t>(place) && is_of(entry, matches[place]);
    });
    if (found == shard.run.entries.end()) {
      refuse(fmt::format("{} is finished without its match {} of {} on {}: nothing was merged", shard.name(), place,
                         matches[place].contestant, matches[place].suite));
    }
    entries.push_back(*found);
  }
  return entries;
}

using ByNumber = std::map<int, const HeldShard*>;

/// The finished shards, all of one tournament.
ByNumber finished_shards(const std::vector<HeldShard>& shards) {
  ByNumber finished;
  const HeldShard* first = nullptr;
  for (const HeldShard& shard : shards) {
    if (shard.run.ended.empty()) {
      continue;
    }
    first = first == nullptr ? &shard : first;
    refuse_another_tournament(shard, *first);
    const auto [other, is_new] = finished.emplace(shard.record().shard.number, &shard);
    if (!is_new) {
      refuse(
          fmt::format("{} was held twice: it is run {} there and run {} of ledger {}: name ledgers that hold it once",
                      shard.name(), shard.run.id, other->second->run.id, other->second->ledger));
    }
  }
  return finished;
}

/// Numbers of unfinished shards with a match of their own.
std::vector<int> missing_shards(const ByNumber& finished, const ShardRecord& any) {
  std::vector<int> missing;
  for (const MatchRecord& match : any.matches) {
    if (!finished.contains(match.shard)) {
      missing.push_back(match.shard);
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

void refuse_missing(const std::vector<int>& missing, const HeldShard& first, const std::vector<HeldShard>& shards) {
  const auto is_unfinished = [&](const HeldShard& shard) {
    return shard.run.ended.empty() && difference(shard.run, first.run).empty() &&
           std::find(missing.begin(), missing.end(), shard.record().shard.number) != missing.end();
  };
  const auto unfinished = std::find_if(shards.begin(), shards.end(), is_unfinished);
  const bool is_one = missing.size() == 1;
  refuse(fmt::format("shard{} {} of {} {} missing{}: name the ledgers that hold {}, or merge the others with --partial",
                     is_one ? "" : "s", ranges(missing), first.record().shard.count, is_one ? "is" : "are",
                     unfinished == shards.end()
                         ? ""
                         : fmt::format(" ({} is unfinished: --resume goes on with it)", unfinished->name()),
                     is_one ? "it" : "them"));
}

std::string merged_device(const MergeRecord& merge) {
  const std::string& first = merge.shards.front().device;
  const bool is_one = std::all_of(merge.shards.begin(), merge.shards.end(),
                                  [&](const MergedShard& shard) { return shard.device == first; });
  return is_one ? first : kind_of_device(first);
}

/// Adds the shard's own entries, and their predictions, to the run.
void add_entries(const HeldShard& shard, RunRecord& run, MergeRecord& merge) {
  MergedShard merged{shard.record().shard.number,
                     shard.run.device,
                     shard.run.context.machine,
                     shard.run.started,
                     shard.run.ended,
                     shard.run.hash,
                     {}};
  for (Entry& entry : own_entries(shard)) {
    merged.entries.push_back(entry.ordinal);
    const auto is_about = [&](const PredictionRecord& prediction) { return prediction.ordinal == entry.ordinal; };
    std::copy_if(shard.run.predictions.begin(), shard.run.predictions.end(), std::back_inserter(run.predictions),
                 is_about);
    run.entries.push_back(std::move(entry));
  }
  if (!merged.entries.empty()) {
    run.started = run.started.empty() ? merged.started : std::min(run.started, merged.started);
    run.ended = std::max(run.ended, merged.ended);
    merge.shards.push_back(std::move(merged));
  }
}

RunRecord merged_run(const ByNumber& finished, std::vector<int> missing) {
  RunRecord run;
  MergeRecord merge{finished.begin()->second->record().shard.count, {}, std::move(missing)};
  for (const auto& [number, shard] : finished) {
    add_entries(*shard, run, merge);
  }
  if (run.entries.empty()) {
    refuse(fmt::format("{} has no match, and no other shard is here: there is nothing to merge",
                       finished.begin()->second->name()));
  }
  const RunRecord& first = finished.at(merge.shards.front().number)->run;
  const auto by_ordinal = [](const auto& left, const auto& right) { return left.ordinal < right.ordinal; };
  std::stable_sort(run.predictions.begin(), run.predictions.end(), by_ordinal);
  std::sort(run.entries.begin(), run.entries.end(), by_ordinal);
  run.device = merged_device(merge);
  run.seed = first.seed;
  run.context = first.context;
  run.suites = first.suites;
  run.arguments = add_merge(first.arguments, merge);
  run.key = run_key(run);
  run.merge = std::move(merge);
  return run;
}

}  // namespace

Merged merge_shards(const fs::path& into, const std::vector<std::string>& from, bool is_partial) {
  refuse_named_twice(from);
  const std::vector<HeldShard> shards = shards_in(from);
  const ByNumber finished = finished_shards(shards);
  if (finished.empty()) {
    refuse(
        fmt::format("{} is unfinished, and no finished one is here: --resume goes on with it", shards.front().name()));
  }
  const HeldShard& first = *finished.begin()->second;
  std::vector<int> missing = missing_shards(finished, first.record());
  if (!missing.empty() && !is_partial) {
    refuse_missing(missing, first, shards);
  }
  RunRecord run = merged_run(finished, std::move(missing));
  Ledger ledger(into, Ledger::Access::write);
  refuse_changed(ledger);
  const Ledger::Added added = ledger.add(run);
  run.id = added.run;
  return {std::move(run), added.is_new};
}

}  // namespace thresher::arena
