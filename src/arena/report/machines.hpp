#pragma once
/// Describes a run's part of a tournament, and the machine of each shard. All are empty for a whole tournament on one
/// machine.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// "shard 2/3", "merged from 3 shards", "merged without shard 2 of 3".
[[nodiscard]] std::string part_text(const RunRecord& run);
/// For an entry of a merged run: "shard 2, node17".
[[nodiscard]] std::string place_text(const RunRecord& run, const Entry& entry);
/// Lines, each with a line end: the number of a shard; for a merged run, each shard's machine and the missing shards.
[[nodiscard]] std::string machines_text(const RunRecord& run);

}  // namespace thresher::arena
