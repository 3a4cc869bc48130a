#pragma once
/// The whole gate product, then the whole up product, one fused epilogue (Hopper, operands of 16 bits).
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& sequential_strategy();

}  // namespace thresher::strategies::dual_gemm
