#pragma once
/// Which part of a tournament a run is, and which machine held what, in words. All are empty for a run that is all of a
/// tournament on one machine.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// "shard 2/3", "merged from 3 shards", "merged without shard 2 of 3".
[[nodiscard]] std::string part_text(const RunRecord& run);
/// Of an entry of a merged run: "shard 2, node17".
[[nodiscard]] std::string place_text(const RunRecord& run, const Entry& entry);
/// Lines, each ended: what part a shard is; the machine of each shard of a merged run, and which shards are missing.
[[nodiscard]] std::string machines_text(const RunRecord& run);

}  // namespace thresher::arena
