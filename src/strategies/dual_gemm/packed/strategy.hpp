#pragma once
/// NVFP4 weights, packed once, made into the matrix unit's operand in registers (Hopper).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& packed_strategy();

}  // namespace thresher::strategies::dual_gemm
