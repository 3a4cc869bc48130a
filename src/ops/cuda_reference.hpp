#pragma once
/// The float64 definition on a GPU: the same function as reference::dual_gemm, fast enough for tests to compare large
/// problems.
#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

/// Enqueues out[m, n] = the definition, float64, not rounded to the output format. Operands and `out` are in the memory
/// of one GPU; operands as validate_run and validate_weights demand, at any alignment. The first call on a GPU
/// compiles.
void cuda_reference_dual_gemm(Stream stream, const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                              const Tensor& b2_up, double* out);

}  // namespace thresher::ops
