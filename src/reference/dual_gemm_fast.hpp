#pragma once
/// The dual GEMM for large problems: a faster definition, and the result of a plain computation in low precision.
#include <vector>

#include "reference/products.hpp"
#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

/// Gate, up and their output, each over a region.
struct Outputs {
  std::vector<double> gate;
  std::vector<double> up;
  std::vector<double> value;
};

/// The definition over a region, blocked and on `threads` threads (0: one per processor); `value` equals dual_gemm.
[[nodiscard]] Outputs dual_gemm_fast(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                                     const Tensor& b2_up, const Region& region, int threads = 0);

/// The result of a plain computation over a region: operands in their own precision, float32 accumulation, float32
/// activation, one rounding to the output format. It sets the allowed error. `accumulation` must not be float64.
[[nodiscard]] Outputs plain_low_precision(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                                          const Tensor& b2_up, const Region& region, Accumulation accumulation,
                                          int threads = 0);

}  // namespace thresher::reference
