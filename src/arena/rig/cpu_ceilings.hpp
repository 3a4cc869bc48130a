#pragma once
/// The upper limits of this CPU.
#include "arena/rig/rig.hpp"

namespace thresher::arena {

/// Takes about a second.
[[nodiscard]] Ceilings measure_cpu_ceilings();

}  // namespace thresher::arena
