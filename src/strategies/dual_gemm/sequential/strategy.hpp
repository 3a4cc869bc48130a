#pragma once
/// The whole gate product, then the whole up product, one fused epilogue (Hopper, operands of 16 bits).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& sequential_strategy();

}  // namespace thresher::strategies::dual_gemm
