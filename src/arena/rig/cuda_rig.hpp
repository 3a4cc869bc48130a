#pragma once
/// One NVIDIA GPU as a machine to hold a tournament on.
#include <memory>

#include "arena/rig/rig.hpp"

namespace thresher::arena {

/// Throws Error(device) with what is missing when GPU `ordinal` cannot be used.
[[nodiscard]] std::unique_ptr<Rig> cuda_rig(int ordinal);

}  // namespace thresher::arena
