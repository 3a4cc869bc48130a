#pragma once
/// The confinement of a process that runs a user kernel, in any language.
#include <filesystem>
#include <vector>

#include "runtime/confinement.hpp"

namespace thresher::arena::user_kernels {

/// The process reads `readable` and the system's libraries, writes nothing, forks nothing, and may use three quarters
/// of the memory that is available now.
[[nodiscard]] runtime::Confinement confinement_of_kernels(std::vector<std::filesystem::path> readable);

}  // namespace thresher::arena::user_kernels
