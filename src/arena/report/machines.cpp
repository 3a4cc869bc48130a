#include "arena/report/machines.hpp"

#include <fmt/format.h>

#include "arena/results/record_json.hpp"
#include "core/printable.hpp"

namespace thresher::arena {
namespace {

std::string name_or_unknown(const std::string& name) { return name.empty() ? "a machine without a name" : name; }

std::string shard_text(const ShardRecord& shard) {
  const std::size_t held = matches_held(shard.matches, shard.shard.number).size();
  if (held == 0) {
    return fmt::format("shard {} has no match: the tournament's {} are all in other shards\n", label(shard.shard),
                       shard.matches.size());
  }
  return fmt::format(
      "shard {} of a tournament: {} of its {} matches; `thresher ledger merge` puts the shards together\n",
      label(shard.shard), held, shard.matches.size());
}

}  // namespace

std::string part_text(const RunRecord& run) {
  if (run.shard) {
    return fmt::format("shard {}", label(run.shard->shard));
  }
  if (!run.merge) {
    return "";
  }
  return run.merge->missing.empty()
             ? fmt::format("merged from {} shard{}", run.merge->shards.size(), run.merge->shards.size() == 1 ? "" : "s")
             : fmt::format("merged without shard{} {} of {}", run.merge->missing.size() == 1 ? "" : "s",
                           ranges(run.merge->missing), run.merge->count);
}

std::string place_text(const RunRecord& run, const Entry& entry) {
  const MergedShard* const shard = run.merge ? run.merge->shard_of(entry.ordinal) : nullptr;
  return shard == nullptr ? ""
                          : fmt::format("shard {}, {}", shard->number,
                                        printable(name_or_unknown(machine_from_json(shard->machine).name)));
}

std::string machines_text(const RunRecord& run) {
  if (run.shard) {
    return shard_text(*run.shard);
  }
  std::string text;
  for (const MergedShard& shard : run.merge ? run.merge->shards : std::vector<MergedShard>{}) {
    const MachineLabel machine = machine_from_json(shard.machine);
    text += fmt::format("  shard {}: {}, {}, {}\n", shard.number, printable(name_or_unknown(machine.name)),
                        printable(machine.model), printable(shard.device));
  }
  if (run.merge && !run.merge->missing.empty()) {
    text += fmt::format("  missing: {}\n", ranges(run.merge->missing));
  }
  return text;
}

}  // namespace thresher::arena
