#pragma once
/// Merges the shards of one tournament, from the ledgers of several machines, into one run.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/results/record.hpp"

namespace thresher::arena {

struct Merged {
  RunRecord run;       ///< with its number in the target ledger
  bool is_new = true;  ///< false: that ledger already had these shards merged, and nothing was written
};

/// Merges every finished shard that the ledgers `from` hold. The run equals that of the whole tournament: each match
/// once, in the tournament's order, from the shard that it was dealt to, with that shard's machine. `is_partial` lets
/// shards be missing. All checks precede the one transaction. Throws Error, with nothing written, for a ledger that is
/// unreadable, changed after it was written, or without shards. Shards of different tournaments or versions of
/// Thresher, two runs of one shard, and missing shards are errors too.
[[nodiscard]] Merged merge_shards(const std::filesystem::path& into, const std::vector<std::string>& from,
                                  bool is_partial);

}  // namespace thresher::arena
