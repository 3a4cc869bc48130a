#pragma once
/// Other programs: what they say and how they end.
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/process_tree.hpp"

namespace thresher::runtime {

struct ProcessOutput {
  int status = 0;               ///< as waitpid has it
  std::string text;             ///< standard output and error together
  std::string stopped_because;  ///< it was ended: "it took longer than 120 s"; empty when it ended by itself
  Confined confined;            ///< of a command with a confinement
  [[nodiscard]] bool succeeded() const noexcept { return status == 0; }
  /// The first line that holds `word`, else the first line.
  [[nodiscard]] std::string line_with(const std::string& word) const;
};

/// Runs the program to its end, without input. A name without a slash is looked for on PATH. Throws Error(io) when it
/// cannot be started.
[[nodiscard]] ProcessOutput run_process(const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments);

struct ProcessLimits {
  double time_s = 120;
  std::size_t output_bytes = std::size_t{1} << 20;
};

/// Runs the command to its end, or until it has used up a limit; all that it started ends with it. `output` is this
/// function's. Throws Error(io) when it cannot be started.
[[nodiscard]] ProcessOutput run_process(Command command, const ProcessLimits& limits);

/// A folder of its own among the system's temporary ones, removed with all it holds when the object goes, and when this
/// process does, however it ends.
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
