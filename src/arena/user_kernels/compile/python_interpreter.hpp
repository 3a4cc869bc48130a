#pragma once
/// The Python that runs users' kernels: which file it is, what it can import, and what it may read.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/user_kernels/compile/build_record.hpp"

namespace thresher::arena::user_kernels {

struct PythonInterpreter {
  std::filesystem::path program;               ///< as it is started: in a virtual environment the link there
  std::string version;                         ///< "CPython 3.11.7 with NumPy 2.4.6"
  std::vector<ToolFile> tools;                 ///< the file behind the program
  std::vector<std::string> importable;         ///< of numpy, ml_dtypes and torch
  std::vector<std::filesystem::path> folders;  ///< where it has its modules
};

/// $THRESHER_PYTHON, else python3; asked once for each program. Throws Error(unsupported) when there is none that can
/// be used.
[[nodiscard]] const PythonInterpreter& python_interpreter();

/// What starts it on `script`.
[[nodiscard]] std::vector<std::string> python_command(const PythonInterpreter& interpreter,
                                                      const std::filesystem::path& script,
                                                      const std::vector<std::string>& arguments);

/// What it is told there of this process's environment. Its home is `folder`, or the user's own where this Python has
/// modules below, which it does not find otherwise.
[[nodiscard]] std::vector<std::string> python_environment(const PythonInterpreter& interpreter,
                                                          const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
