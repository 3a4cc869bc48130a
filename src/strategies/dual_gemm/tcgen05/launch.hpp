#pragma once
/// What a configuration of the dual GEMM on tcgen05 launches: packing, preparing tokens, the product.
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// `config` has no obstacle.
[[nodiscard]] PlannedCall planned_call(const DualGemmProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05
