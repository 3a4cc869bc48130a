#pragma once
/// Small text files, written so that readers see the old one or the new one.
#include <filesystem>
#include <string_view>

namespace thresher::arena {

/// Writes beside `path` and renames; devices and pipes are written to directly. Throws Error(io) naming `what` and the
/// path, and leaves no file behind then.
void write_text(const std::filesystem::path& path, std::string_view text, std::string_view what);

/// Throws as write_text would, and leaves an existing file unchanged.
void check_writable(const std::filesystem::path& path, std::string_view what);

}  // namespace thresher::arena
