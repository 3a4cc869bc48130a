#pragma once
/// Files that somebody else wrote, read whole and within a limit.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace thresher {

/// What suites, pitches, kernels and the files of parameters may have at most.
inline constexpr std::uint64_t max_text_bytes = std::uint64_t{16} << 20;

struct InputFile {
  std::optional<std::string> bytes;
  /// "the file cannot be read: it is not a regular file"; empty when `bytes` holds it.
  std::string obstacle;
};

/// What is said of a file that cannot be read, and of one that the system refuses.
[[nodiscard]] InputFile unreadable(const std::string& why);
[[nodiscard]] InputFile unreadable_for(int error_number);

/// Regular files alone: a pipe would be waited for, and a device may have no end.
[[nodiscard]] InputFile read_input_file(const std::filesystem::path& path, std::uint64_t max_bytes = max_text_bytes);

}  // namespace thresher
