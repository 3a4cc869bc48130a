#include "arena/results/record.hpp"

#include <fmt/chrono.h>

#include <chrono>

#include "arena/random.hpp"

namespace thresher::arena {

std::string plain_verdict(const Entry& entry) {
  const GateResult* const failed = first_failure(entry.gates);
  return entry.verdict == Verdict::failed && failed != nullptr ? fmt::format("failed at {}", name(failed->kind))
                                                               : std::string(name(entry.verdict));
}

std::string verdict_text(const Entry& entry) {
  if (entry.verdict != Verdict::accepted) {
    return plain_verdict(entry);
  }
  const GateCount count = count_gates(entry.gates);
  return fmt::format("accepted ({} of {} gates judged)", count.judged, count.all);
}

std::string run_key(const RunRecord& run) {
  return fmt::format("{:016x}", derive_seed(0, run.arguments + run.device + run.context.source_hash));
}

std::vector<RunRecord> without_merged_shards(std::vector<RunRecord> runs) {
  std::set<std::string> merged;
  for (const RunRecord& run : runs) {
    if (run.merge) {
      for (const MergedShard& shard : run.merge->shards) {
        merged.insert(shard.hash);
      }
    }
  }
  std::erase_if(runs, [&](const RunRecord& run) { return run.shard && merged.contains(run.hash); });
  return runs;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace thresher::arena
