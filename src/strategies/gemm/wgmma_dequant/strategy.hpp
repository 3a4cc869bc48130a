#pragma once
/// Products with NVFP4 weights, which are packed once and become the operand of wgmma in registers (Hopper). It takes
/// every layout of rows, and one matrix or two.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

const Strategy<ProductProblem>& packed_strategy();

}  // namespace thresher::strategies::gemm
