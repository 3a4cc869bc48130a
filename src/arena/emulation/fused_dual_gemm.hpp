#pragma once
/// The 16-bit kernels of the dual GEMM in the emulator: sequential, interleaved, pingpong.
#include "arena/emulation/emulation.hpp"
#include "strategies/dual_gemm/fused/config.hpp"

namespace thresher::arena {

[[nodiscard]] std::string strategy_name(const strategies::dual_gemm::fused::Config& config);

/// `knobs` says the same in the planner's words; empty for one of the samples.
[[nodiscard]] std::shared_ptr<const EmulatedKernel> make_fused_emulation(
    const strategies::dual_gemm::fused::Config& config, std::string knobs);

}  // namespace thresher::arena
