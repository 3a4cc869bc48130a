#pragma once
/// The strategies of this CPU: block by block of the weights, two whole products (src/cpu/dual_gemm.hpp), or an expert
/// for each thread (src/cpu/grouped_gemm.hpp).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

const Strategy<ProductProblem>& cpu_interleaved_strategy();
const Strategy<ProductProblem>& cpu_two_pass_strategy();
const Strategy<ProductProblem>& cpu_by_expert_strategy();

}  // namespace thresher::strategies::gemm
