#pragma once
/// As interleaved; two warpgroups alternate, one multiplies while the other finishes its tile (Hopper, operands of 16
/// bits).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& pingpong_strategy();

}  // namespace thresher::strategies::dual_gemm
