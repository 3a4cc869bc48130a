#pragma once
/// Each tile of tokens is loaded once and multiplied by gate and up side by side (Hopper, operands of 16 bits).
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& interleaved_strategy();

}  // namespace thresher::strategies::dual_gemm
