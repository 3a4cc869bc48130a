#pragma once
/// The dual GEMM of 16-bit and of FP8 operands on Blackwell's tensor cores.
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

[[nodiscard]] const Strategy<DualGemmProblem>& tcgen05_plain_strategy();

}  // namespace thresher::strategies::dual_gemm
