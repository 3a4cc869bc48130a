#pragma once
/// The strategies of this CPU: block by block of the weights, or two whole products (src/cpu/dual_gemm.hpp).
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& cpu_interleaved_strategy();
const Strategy<ProductProblem>& cpu_two_pass_strategy();

}  // namespace thresher::strategies::dual_gemm
