#pragma once
/// The roundings of the plain low-precision computation of an attention.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// With FP8 queries all operands are FP8 values, the softmax weights too, and dot products are accumulated as by
/// Hopper's tensor cores.
inline bool multiplies_codes(const AttentionProblem& problem) {
  return effective_q_format(problem) == Format::fp8_e4m3;
}

/// A weight, relative to its row's maximum, over the row's sum, as an operand of the product with the values. It is
/// rounded to the format. With FP8 queries it is rounded to fp8_e4m3, where a row's maximum is 2^8, the greatest power
/// of two there is.
inline float plain_probability(const AttentionProblem& problem, float weight, float sum) {
  constexpr float largest = 256.0F;
  if (multiplies_codes(problem)) {
    return formats::e4m3_to_float(formats::float_to_e4m3(weight * largest)) / (largest * sum);
  }
  return rounded(problem.format, weight / sum);
}

/// Dot products of a query with `keys` keys, accumulated as by those tensor cores; `element` gives element d of key j.
template <class Element>
std::vector<float> aligned_dots(std::span<const float> query, std::int64_t keys, const Element& element) {
  const std::vector<double> own(query.begin(), query.end());
  std::vector<double> panel(query.size() * static_cast<std::size_t>(panel_columns));
  std::vector<float> dots;
  for (std::int64_t first = 0; first < keys; first += panel_columns) {
    const std::int64_t count = std::min(panel_columns, keys - first);
    auto to = panel.begin();
    for (std::size_t d = 0; d < query.size(); ++d, to += panel_columns) {
      for (std::int64_t j = 0; j < count; ++j) {
        to[j] = static_cast<double>(element(first + j, static_cast<std::int64_t>(d)));
      }
    }
    std::array<double, static_cast<std::size_t>(panel_columns)> sums{};
    for (std::size_t d = 0; d < query.size(); d += static_cast<std::size_t>(aligned_elements)) {
      add_aligned_row(&own[d], &panel[d * static_cast<std::size_t>(panel_columns)], aligned_elements, sums.data());
    }
    dots.insert(dots.end(), sums.begin(), sums.begin() + count);
  }
  return dots;
}

}  // namespace thresher::reference
