#pragma once
/// The Python interpreter that runs user kernels: its file, its packages, and the folders that it may read.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/user_kernels/compile/build_record.hpp"

namespace thresher::arena::user_kernels {

struct PythonInterpreter {
  std::filesystem::path program;               ///< as started: in a virtual environment the link there
  std::string version;                         ///< "CPython 3.11.7 with NumPy 2.4.6"
  std::vector<ToolFile> tools;                 ///< the file behind the program
  std::vector<std::string> importable;         ///< a subset of numpy, ml_dtypes and torch
  std::vector<std::filesystem::path> folders;  ///< the folders of its modules
};

/// $THRESHER_PYTHON, else python3; queried once for each program. Throws Error(unsupported) when no usable one exists.
[[nodiscard]] const PythonInterpreter& python_interpreter();

/// The command that starts it on `script`.
[[nodiscard]] std::vector<std::string> python_command(const PythonInterpreter& interpreter,
                                                      const std::filesystem::path& script,
                                                      const std::vector<std::string>& arguments);

/// Its environment, taken from this process's. Its home is `folder`, or the user's own where this Python has modules
/// below it, which it would not find otherwise.
[[nodiscard]] std::vector<std::string> python_environment(const PythonInterpreter& interpreter,
                                                          const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
