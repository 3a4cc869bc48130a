#pragma once
/// Numerics `fast` quantizes an operand: each element is rounded once to e4m3, after its row was multiplied by a power
/// of two. The definition of `fast` is the float64 definition on these operands.
#include <cstdint>
#include <span>
#include <vector>

#include "reference/tolerance.hpp"

namespace thresher::reference {

/// A quantized matrix [rows, k] in float32, divided again by the rows' powers of two: exact.
struct Folded {
  std::vector<float> values;
  Tensor view;  ///< refers to `values` and to the operand's global scale
};

/// NVFP4 weights: a power of two brings the row's largest scale as near as possible to 72, and not above (six times it
/// is at most 448). Scales that are then below 2^-5 are rounded to multiples of it that e2m1 has. A row with a NaN
/// scale is NaN.
Folded fold_weights(const Tensor& weights);
/// Only these rows, in that order.
Folded fold_weights(const Tensor& weights, std::span<const std::int64_t> rows);

/// Tokens: NVFP4 rows by their largest scale in the same way, 16-bit rows so that the largest element is at most 448.
/// No element is treated separately. A row with a NaN or an Inf is NaN.
Folded fold_tokens(const Tensor& tokens);
Folded fold_tokens(const Tensor& tokens, std::span<const std::int64_t> rows);

/// judge_dual_gemm with the definition on the quantized operands.
Verdict judge_fast_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                             const Tensor& b2_up, const Tensor& c, const Region& region,
                             Accumulation accumulation = Accumulation::float14_truncated, int threads = 0);

}  // namespace thresher::reference
