#pragma once
/// Each tile of tokens is loaded once and multiplied by gate and up side by side (Hopper, operands of 16 bits).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& interleaved_strategy();

}  // namespace thresher::strategies::dual_gemm
