#pragma once
/// The strategy of this CPU: an expert a thread, block by block of its weights (src/cpu/grouped_gemm.hpp).
#include "strategies/strategy.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<GroupedProblem>& cpu_by_expert_strategy();

}  // namespace thresher::strategies::grouped_gemm
