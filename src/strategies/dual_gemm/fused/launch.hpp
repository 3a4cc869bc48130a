#pragma once
/// What a configuration of the 16-bit dual GEMM launches.
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// `config` has no obstacle.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
