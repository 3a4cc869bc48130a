#pragma once
/// What a configuration of the dual GEMM on tcgen05 launches: packing, preparing tokens, the product.
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// `config` has no obstacle.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05
