#pragma once
/// Shards in a run's arguments. A run is a shard, or merged from shards, or neither.
#include <optional>
#include <string>

#include "arena/results/shard.hpp"

namespace thresher::arena {

/// The arguments with the run's shard.
[[nodiscard]] std::string add_shard(const std::string& arguments, const ShardRecord& shard);
/// The arguments of the merged run, made from those of one of its shards.
[[nodiscard]] std::string add_merge(const std::string& arguments_of_shard, const MergeRecord& merge);

/// The record in the arguments; empty when there is none. Error(invalid_argument) for text that the functions above did
/// not write.
[[nodiscard]] std::optional<ShardRecord> shard_from_json(const std::string& arguments);
[[nodiscard]] std::optional<MergeRecord> merge_from_json(const std::string& arguments);

/// The name of the argument in which two shards of one tournament wrongly differ; empty when they agree. The path of a
/// pitch's file and the shard's number may differ.
[[nodiscard]] std::string differing_argument(const std::string& one, const std::string& other);

}  // namespace thresher::arena
