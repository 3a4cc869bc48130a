#pragma once
/// The dual GEMM of 16-bit and of FP8 operands on Blackwell's tensor cores.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

[[nodiscard]] const Strategy<ProductProblem>& tcgen05_plain_strategy();

}  // namespace thresher::strategies::dual_gemm
