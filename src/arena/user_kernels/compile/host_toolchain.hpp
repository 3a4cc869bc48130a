#pragma once
/// The C++ compiler that builds users' kernels: which files it is, where it has its headers, and what it may reach.
#include <filesystem>
#include <string>
#include <vector>

#include "arena/user_kernels/compile/build_record.hpp"

namespace thresher::arena::user_kernels {

/// Seconds that a compiler is given for a kernel.
inline constexpr double compiler_limit_s = 120;

struct HostToolchain {
  std::filesystem::path compiler;                      ///< as it is started
  std::string version;                                 ///< the first line of --version
  std::vector<ToolFile> tools;                         ///< the file that is started, and the compiler proper behind it
  std::vector<std::filesystem::path> include_folders;  ///< where it looks for <headers>
  std::vector<std::filesystem::path> folders;          ///< outside the system's that it runs programs of and reads
};

/// $CXX, else c++; asked once for each compiler. Throws Error(compile) when there is none that can be used.
[[nodiscard]] const HostToolchain& host_toolchain();

/// What a compiler is told of this process's environment, with its temporary files in `folder`.
[[nodiscard]] std::vector<std::string> compiler_environment(const std::filesystem::path& folder);

}  // namespace thresher::arena::user_kernels
