#pragma once
/// How the plain low-precision computation rounds.
#include "formats/numbers.hpp"
#include "thresher/attention.hpp"

namespace thresher::reference {

/// To fp16 or bf16 and back.
inline float rounded(Format format, float value) {
  return format == Format::fp16 ? formats::fp16_to_float(formats::float_to_fp16(value))
                                : formats::bf16_to_float(formats::float_to_bf16(value));
}

/// A weight, relative to its row's largest, over the row's sum, as it meets the values: rounded to the format, or with
/// FP8 queries to fp8_e4m3 where a row's largest is 2^8, the greatest power of two there is.
inline float plain_probability(const AttentionProblem& problem, float weight, float sum) {
  constexpr float largest = 256.0F;
  if (effective_q_format(problem) == Format::fp8_e4m3) {
    return formats::e4m3_to_float(formats::float_to_e4m3(weight * largest)) / (largest * sum);
  }
  return rounded(problem.format, weight / sum);
}

}  // namespace thresher::reference
