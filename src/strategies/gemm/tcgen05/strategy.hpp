#pragma once
/// The products on Blackwell's tensor cores, of all experts where there are some.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// NVFP4 operands.
[[nodiscard]] const Strategy<ProductProblem>& tcgen05_strategy();
/// Operands of 16 bits and of FP8.
[[nodiscard]] const Strategy<ProductProblem>& tcgen05_plain_strategy();

}  // namespace thresher::strategies::gemm
