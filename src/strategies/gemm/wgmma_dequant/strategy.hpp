#pragma once
/// NVFP4 weights, packed once, made into the operand of wgmma in registers (Hopper). Its name for users is "packed".
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// Takes gate and up with dense rows.
const Strategy<ProductProblem>& dense_packed_strategy();
/// Takes every layout of rows, and one matrix or two.
const Strategy<ProductProblem>& grouped_packed_strategy();

}  // namespace thresher::strategies::gemm
