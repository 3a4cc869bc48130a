#pragma once
/// The dual GEMM of NVFP4 tokens and weights on Blackwell's tensor cores.
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

[[nodiscard]] const Strategy<DualGemmProblem>& tcgen05_strategy();

}  // namespace thresher::strategies::dual_gemm
