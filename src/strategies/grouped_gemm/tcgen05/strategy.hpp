#pragma once
/// NVFP4 tokens and NVFP4 weights of all experts, multiplied on Blackwell's tensor cores.
#include "strategies/strategy.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<GroupedProblem>& tcgen05_strategy();

}  // namespace thresher::strategies::grouped_gemm
