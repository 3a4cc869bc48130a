#pragma once
/// Reads files whose names come from an untrusted party: only beneath one folder.
#include <filesystem>
#include <string>

#include "core/input_file.hpp"

namespace thresher::arena {

/// Why `path` may not name a file beneath a folder, as a clause after its name; empty when it may. Reads nothing.
[[nodiscard]] std::string beneath_obstacle(const std::filesystem::path& path);

/// Reads the regular file at `path`, relative to `folder`. No part of `path` may be a link or lead back up; the path of
/// `folder` itself may. The obstacle names the offending part.
[[nodiscard]] InputFile read_beneath(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace thresher::arena
