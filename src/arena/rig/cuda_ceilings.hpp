#pragma once
/// The upper limits of a GPU.
#include "arena/rig/rig.hpp"

namespace thresher::arena {

/// Times a large 16-bit product on random data under sustained load, and a long copy within the GPU's memory. Takes
/// about a second and 3 GiB of its memory.
[[nodiscard]] Ceilings measure_cuda_ceilings(int ordinal);

}  // namespace thresher::arena
