#pragma once
/// The dual GEMM with packed NVFP4 weights in the emulator: packing, preparing tokens and the kernel itself.
#include "arena/emulation/emulation.hpp"
#include "strategies/dual_gemm/packed/config.hpp"

namespace thresher::arena {

/// `tokens` is the format of A, which brings tokens to the configuration's operands.
[[nodiscard]] std::shared_ptr<const EmulatedKernel> make_packed_emulation(
    const strategies::dual_gemm::packed::Config& config, Format tokens);

}  // namespace thresher::arena
