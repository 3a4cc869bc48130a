#pragma once
/// The index of a checkpoint in several files: {"metadata": …, "weight_map": {tensor: file}}.
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace thresher::formats {

/// Tensor to file name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

/// Accepts an object with a `weight_map` of names to file names, each once, and a `metadata` of any content not deeper
/// than 16. A file name is one name: no folder, not "." or "..", only printable characters. Throws
/// Error(invalid_argument) naming `file` and what is wrong.
[[nodiscard]] WeightMap parse_shard_index(std::string_view json, std::string_view file);

/// The same for a regular file of at most 100 MB. Throws Error(io) when it cannot be read.
[[nodiscard]] WeightMap read_shard_index(const std::filesystem::path& path);

}  // namespace thresher::formats
