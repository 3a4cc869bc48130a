#pragma once
/// Small text files: read whole, written so that readers see the old one or the new one.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace thresher::arena {

/// Empty when there is no such file or it cannot be read.
[[nodiscard]] std::optional<std::string> read_text(const std::filesystem::path& path);

/// Writes beside `path` and renames; devices and pipes are written to directly. Throws Error(io) that names `what` and
/// the path; nothing is left behind then.
void write_text(const std::filesystem::path& path, std::string_view text, std::string_view what);

/// Throws as write_text would, leaving a file that is there as it is.
void check_writable(const std::filesystem::path& path, std::string_view what);

}  // namespace thresher::arena
