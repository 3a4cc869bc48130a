#pragma once
/// Untrusted files, read whole and within a limit.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace thresher {

/// The maximum size of suites, pitches, kernels and parameter files.
inline constexpr std::uint64_t max_text_bytes = std::uint64_t{16} << 20;

struct InputFile {
  std::optional<std::string> bytes;
  /// "the file cannot be read: it is not a regular file"; empty when `bytes` holds it.
  std::string obstacle;
};

/// The text for a file that cannot be read, or that the system refuses to open.
[[nodiscard]] InputFile unreadable(const std::string& why);
[[nodiscard]] InputFile unreadable_for(int error_number);

/// Regular files only: a pipe would block, and a device may have no end.
[[nodiscard]] InputFile read_input_file(const std::filesystem::path& path, std::uint64_t max_bytes = max_text_bytes);

}  // namespace thresher
