#pragma once
/// The shards of one tournament, from the ledgers of the machines that held them, as one run.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/results/record.hpp"

namespace thresher::arena {

struct Merged {
  RunRecord run;       ///< with its number in the ledger that it is in now
  bool is_new = true;  ///< false: the same shards had been merged into that ledger before, and nothing was written
};

/// Merges every finished shard that the ledgers `from` hold. The run is as that of the whole tournament would be: each
/// match once, in the tournament's order, from the shard that it was dealt to, with the machine that it was held on.
/// `is_partial` lets shards be missing. One transaction, and before it everything is looked at. Throws Error, with
/// nothing written, for a ledger that cannot be read, was changed after it was written or holds no shard, for shards of
/// different tournaments or versions of Thresher, for two runs of one shard, and for shards that are missing.
[[nodiscard]] Merged merge_shards(const std::filesystem::path& into, const std::vector<std::string>& from,
                                  bool is_partial);

}  // namespace thresher::arena
