#pragma once
/// What numerics `fast` makes of an operand: each element rounded once to e4m3, after its row was multiplied by a power
/// of two. The definition of `fast` is the float64 definition on folded operands.
#include <cstdint>
#include <span>
#include <vector>

#include "reference/tolerance.hpp"

namespace thresher::reference {

/// A folded matrix [rows, k] in float32, the rows' powers of two divided out again: exact.
struct Folded {
  std::vector<float> values;
  Tensor view;  ///< refers to `values` and to the operand's global scale
};

/// Weights in NVFP4: the row's largest scale is brought to at most 72 (six times it is at most 448), as near as a power
/// of two can. Groups whose scale is then below 2^-5 are rounded to multiples of it that e2m1 has.
/// A row with a NaN scale is NaN.
Folded fold_weights(const Tensor& weights);
/// Some of its rows, in that order.
Folded fold_weights(const Tensor& weights, std::span<const std::int64_t> rows);

/// Tokens: NVFP4 rows by their largest scale in the same way, 16-bit rows so that the largest element is at most 448.
/// No element is treated apart. A row with a NaN or an Inf is NaN.
Folded fold_tokens(const Tensor& tokens);
Folded fold_tokens(const Tensor& tokens, std::span<const std::int64_t> rows);

/// judge_dual_gemm against the definition on the folded operands.
Verdict judge_fast_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                             const Tensor& b2_up, const Tensor& c, const Region& region,
                             Accumulation accumulation = Accumulation::float14_truncated, int threads = 0);

}  // namespace thresher::reference
