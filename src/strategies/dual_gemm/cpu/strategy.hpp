#pragma once
/// The strategies of this CPU: block by block of the weights, or two whole products (src/cpu/dual_gemm.hpp).
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& cpu_interleaved_strategy();
const Strategy<DualGemmProblem>& cpu_two_pass_strategy();

}  // namespace thresher::strategies::dual_gemm
