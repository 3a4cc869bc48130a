#pragma once
/// What a configuration of the dual GEMM of plain operands on tcgen05 launches.
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

/// `config` has no obstacle.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
