#pragma once
/// One NVIDIA GPU as the machine of a tournament.
#include <memory>

#include "arena/rig/rig.hpp"

namespace thresher::arena {

/// Throws Error(device) naming what is missing when GPU `ordinal` cannot be used.
[[nodiscard]] std::unique_ptr<Rig> cuda_rig(int ordinal);

}  // namespace thresher::arena
