#pragma once
/// As interleaved; two warpgroups alternate, one multiplies while the other finishes its tile (Hopper, operands of 16
/// bits).
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& pingpong_strategy();

}  // namespace thresher::strategies::dual_gemm
