#pragma once
/// Attention's kernels in the emulator.
#include "arena/emulation/emulation.hpp"

namespace thresher::arena {

[[nodiscard]] const EmulatedOperation& emulated_attention();

}  // namespace thresher::arena
