#pragma once
/// The C++ compiler that builds user kernels: its files, its headers, and the folders that it may read.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/user_kernels/compile/build_record.hpp"

namespace thresher::arena::user_kernels {

/// The time limit for compiling one kernel, in seconds.
inline constexpr double compiler_limit_s = 120;

struct HostToolchain {
  std::filesystem::path compiler;                      ///< as started
  std::string version;                                 ///< the first line of --version
  std::vector<ToolFile> tools;                         ///< the file that is started, and the compiler proper behind it
  std::vector<std::filesystem::path> include_folders;  ///< its search path for <headers>
  std::vector<std::filesystem::path> folders;  ///< folders outside the system's from which it runs programs and reads
};

/// $CXX, else c++; queried once for each compiler. Throws Error(compile) when no usable one exists.
[[nodiscard]] const HostToolchain& host_toolchain();

/// The compiler's environment, taken from this process's, with its temporary files in `folder`.
[[nodiscard]] std::vector<std::string> compiler_environment(const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
