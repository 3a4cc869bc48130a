#pragma once
/// NVFP4 weights, packed once, made into the matrix unit's operand in registers (Hopper).
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& packed_strategy();

}  // namespace thresher::strategies::dual_gemm
