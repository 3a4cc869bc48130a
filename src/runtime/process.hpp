#pragma once
/// Other programs: their output and their exit.
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/process_tree.hpp"

namespace thresher::runtime {

struct ProcessOutput {
  int status = 0;               ///< as from waitpid
  std::string text;             ///< standard output and error together
  std::string stopped_because;  ///< why it was ended: "it took longer than 120 s"; empty if it ended by itself
  Confined confined;            ///< for a command with a confinement
  [[nodiscard]] bool succeeded() const noexcept { return status == 0; }
  /// The first line that holds `word`, otherwise the first line.
  [[nodiscard]] std::string line_with(const std::string& word) const;
};

/// Runs the program to its end, without input. A name without a slash is searched on PATH. Throws Error(io) when it
/// cannot be started.
[[nodiscard]] ProcessOutput run_process(const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments);

struct ProcessLimits {
  double time_s = 120;
  std::size_t output_bytes = std::size_t{1} << 20;
};

/// Runs the command to its end, or until it exceeds a limit; all its descendants end with it. This function sets
/// `output`. Throws Error(io) when it cannot be started.
[[nodiscard]] ProcessOutput run_process(Command command, const ProcessLimits& limits);

/// A new folder in the system's temporary folder. It is removed with its content when the object is destroyed, and when
/// this process ends for any reason.
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
  pid_t keeper_ = -1;  ///< a process that waits for this one to end
  int line_ = -1;      ///< to it
};

}  // namespace thresher::runtime
