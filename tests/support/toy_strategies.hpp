#pragma once
/// Strategies that no product has, to see that a file and a line are all that a strategy takes.
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::test {

/// A thread for each output, bf16 on a Hopper GPU.
const strategies::Strategy<strategies::gemm::ProductProblem>& toy_gpu_strategy();
/// The definition, row by row.
const strategies::Strategy<strategies::gemm::ProductProblem>& toy_cpu_strategy();

}  // namespace thresher::test
