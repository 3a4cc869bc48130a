#pragma once
/// What a run's arguments say of shards. A run is a shard, or it was merged from shards, or neither.
#include <optional>
#include <string>

#include "arena/results/shard.hpp"

namespace thresher::arena {

/// The arguments with the shard that the run is of.
[[nodiscard]] std::string add_shard(const std::string& arguments, const ShardRecord& shard);
/// The arguments of one of the shards as those of the run that they are merged into.
[[nodiscard]] std::string add_merge(const std::string& arguments_of_shard, const MergeRecord& merge);

/// What is named in the arguments; nothing of those of a run that is none. Error(invalid_argument) for what was not
/// written by the functions above.
[[nodiscard]] std::optional<ShardRecord> shard_from_json(const std::string& arguments);
[[nodiscard]] std::optional<MergeRecord> merge_from_json(const std::string& arguments);

/// What the arguments of two shards differ in although they are to be of one tournament: the name of what differs;
/// empty: they are of one. Where a pitch's file lies is no difference, and neither is which of the shards it is.
[[nodiscard]] std::string differing_argument(const std::string& one, const std::string& other);

}  // namespace thresher::arena
