#pragma once
/// Files that somebody names who may not read everything: only what lies beneath a folder.
#include <filesystem>
#include <string>

#include "core/input_file.hpp"

namespace thresher::arena {

/// Why `path` may not name a file beneath a folder, to stand after its name; empty when it may. Reads nothing.
[[nodiscard]] std::string beneath_obstacle(const std::filesystem::path& path);

/// The regular file at `path`, which is relative, from `folder` on; no part of the way is a link or leads back up. The
/// way to `folder` itself may. The obstacle says which part is in the way.
[[nodiscard]] InputFile read_beneath(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace thresher::arena
