#pragma once
/// The strategy of this CPU: an expert a thread, block by block of its weights (src/cpu/grouped_gemm.hpp).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& cpu_by_expert_strategy();

}  // namespace thresher::strategies::grouped_gemm
