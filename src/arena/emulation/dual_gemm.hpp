#pragma once
/// The fused kernels of the dual GEMM in the emulator.
#include "arena/emulation/emulation.hpp"

namespace thresher::arena {

[[nodiscard]] const EmulatedOperation& emulated_dual_gemm();

}  // namespace thresher::arena
