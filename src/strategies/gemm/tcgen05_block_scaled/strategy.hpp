#pragma once
/// The products of NVFP4 tokens and weights, of all experts where there are some, on Blackwell's tensor cores.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

[[nodiscard]] const Strategy<ProductProblem>& tcgen05_strategy();

}  // namespace thresher::strategies::gemm
