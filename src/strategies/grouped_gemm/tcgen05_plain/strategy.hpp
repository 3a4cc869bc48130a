#pragma once
/// 16-bit tokens and 16-bit weights of all experts, multiplied on Blackwell's tensor cores where they lie.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& tcgen05_plain_strategy();

}  // namespace thresher::strategies::grouped_gemm
