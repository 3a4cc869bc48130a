#pragma once
/// The dual GEMM of NVFP4 tokens and weights on Blackwell's tensor cores.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

[[nodiscard]] const Strategy<ProductProblem>& tcgen05_strategy();

}  // namespace thresher::strategies::dual_gemm
