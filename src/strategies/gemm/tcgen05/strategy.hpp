#pragma once
/// The products of 16-bit and of FP8 operands, of all experts where there are some, on Blackwell's tensor cores.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

[[nodiscard]] const Strategy<ProductProblem>& tcgen05_plain_strategy();

}  // namespace thresher::strategies::gemm
