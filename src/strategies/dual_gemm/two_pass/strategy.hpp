#pragma once
/// Operands widened to one format, two products of the vendor's library into float32, then the activation: the baseline
/// that the fused strategies are measured against, and what runs every mix of formats on any GPU.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& two_pass_strategy();

}  // namespace thresher::strategies::dual_gemm
