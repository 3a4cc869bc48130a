#pragma once
/// What holds a process in which a kernel from outside runs, whatever language that is written in.
#include <filesystem>
#include <vector>

#include "runtime/confinement.hpp"

namespace thresher::arena::user_kernels {

/// It reads `readable` and the system's libraries, writes nothing, forks nothing, and has three quarters of the memory
/// that is available now.
[[nodiscard]] runtime::Confinement confinement_of_kernels(std::vector<std::filesystem::path> readable);

}  // namespace thresher::arena::user_kernels
