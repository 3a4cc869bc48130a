#pragma once
/// Other programs: what they say and how they end.
#include <filesystem>
#include <string>
#include <vector>

namespace thresher::runtime {

struct ProcessOutput {
  int status = 0;    ///< as waitpid has it
  std::string text;  ///< standard output and error together
  [[nodiscard]] bool succeeded() const noexcept { return status == 0; }
  /// The first line that holds `word`, else the first line.
  [[nodiscard]] std::string line_with(const std::string& word) const;
};

/// Runs the program to its end, without input. A name without a slash is looked for on PATH. Throws Error(io) when it
/// cannot be started.
[[nodiscard]] ProcessOutput run_process(const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments);

/// A folder of its own among the system's temporary ones, removed with all it holds.
class TemporaryFolder {
 public:
  /// Throws Error(io).
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace thresher::runtime
