#pragma once
/// The dual GEMM of large problems: the definition, faster, and what a plain computation in low precision yields.
#include <vector>

#include "reference/products.hpp"
#include "reference/region.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

/// Gate, up and the output made of them, each over a region.
struct Outputs {
  std::vector<double> gate;
  std::vector<double> up;
  std::vector<double> value;
};

/// The definition over a region, blocked and on `threads` threads (0: one for each processor): `value` has the numbers
/// of dual_gemm.
[[nodiscard]] Outputs dual_gemm_fast(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                                     const Tensor& b2_up, const Region& region, int threads = 0);

/// What a plain computation yields over a region: operands in their own precision, float32 accumulation, float32
/// activation, one rounding to the output format. The measure of the error that is allowed. `accumulation` is one of
/// the two in float32.
[[nodiscard]] Outputs plain_low_precision(const DualGemmProblem& problem, const Tensor& a, const Tensor& b1_gate,
                                          const Tensor& b2_up, const Region& region, Accumulation accumulation,
                                          int threads = 0);

}  // namespace thresher::reference
