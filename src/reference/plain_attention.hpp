#pragma once
/// How the plain low-precision computation of an attention rounds.
#include <array>
#include <cstddef>
#include <span>

#include "formats/numbers.hpp"
#include "reference/aligned_product.hpp"
#include "reference/panel_product.hpp"
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

/// Dot products of FP8 queries are those of the matrix unit of a Hopper GPU.
inline bool has_aligned_dots(const AttentionProblem& problem) {
  return effective_q_format(problem) == Format::fp8_e4m3;
}

/// Some keys, element by element.
using KeyPanel = std::array<double, static_cast<std::size_t>(panel_columns)>;

/// Dot products of a query with the keys of a panel, as that unit sums them; `keys` has as many elements as `query`.
inline KeyPanel aligned_dots(std::span<const double> query, std::span<const KeyPanel> keys) {
  KeyPanel dots{};
  for (std::size_t first = 0; first < query.size(); first += static_cast<std::size_t>(aligned_elements)) {
    add_aligned_row(&query[first], keys[first].data(), aligned_elements, dots.data());
  }
  return dots;
}

}  // namespace thresher::reference
