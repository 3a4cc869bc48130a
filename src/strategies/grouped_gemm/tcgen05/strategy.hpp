#pragma once
/// NVFP4 tokens and NVFP4 weights of all experts, multiplied on Blackwell's tensor cores.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& tcgen05_strategy();

}  // namespace thresher::strategies::grouped_gemm
