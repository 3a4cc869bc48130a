#include "reference/fold.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "reference/parallel.hpp"

namespace thresher::reference {
namespace {

constexpr float largest_scale = 72.0F;
constexpr float smallest_scale = 0x1p-5F;
constexpr int largest_exponent = 100;

/// The largest e with value·2^e ≤ limit; 0 for 0.
int exponent_to(float value, float limit) {
  if (value == 0.0F) {
    return 0;
  }
  int e = std::ilogb(limit) - std::ilogb(value);
  return std::ldexp(value, e) <= limit ? e : e - 1;
}

float rounded(float value) { return formats::e4m3_to_float(formats::float_to_e4m3(value)); }

float scale_of(const Tensor& matrix, std::int64_t row, std::int64_t group) {
  const std::size_t at =
      formats::scale_offset(row, group, matrix.shape[1] / formats::scale_block, matrix.scales.layout);
  return std::fabs(formats::e4m3_to_float(matrix.scales.codes()[at]));
}

/// The scales of a row, without signs, and their maximum; NaN if one is NaN.
struct Scales {
  std::vector<float> of_group;
  float largest = 0.0F;
};

Scales scales_of(const Tensor& matrix, std::int64_t row) {
  Scales scales;
  for (std::int64_t group = 0; group < matrix.shape[1] / formats::scale_block; ++group) {
    scales.of_group.push_back(scale_of(matrix, row, group));
    const float scale = scales.of_group.back();
    scales.largest = std::isnan(scale) || scale > scales.largest ? scale : scales.largest;
    if (std::isnan(scale)) {
      break;
    }
  }
  return scales;
}

void fill_with_nan(std::span<float> row) { std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN()); }

void fold_nvfp4_row(const Tensor& matrix, std::int64_t row, std::span<float> values, bool quantizes_output) {
  const Scales scales = scales_of(matrix, row);
  if (std::isnan(scales.largest)) {
    return fill_with_nan(values);
  }
  const int e = exponent_to(scales.largest, largest_scale);
  const float there = std::ldexp(1.0F, e);  // powers of two: the products are exact
  const float back = std::ldexp(1.0F, -e);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float moved = values[i] * there;
    const float scale = scales.of_group[i / formats::scale_block] * there;
    const float folded = quantizes_output && scale < smallest_scale
                             ? formats::e2m1_to_float(formats::float_to_e2m1(moved / smallest_scale)) * smallest_scale
                             : rounded(moved);
    values[i] = folded * back;
  }
}

void fold_wide_row(std::span<float> values) {
  float largest = 0.0F;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      return fill_with_nan(values);
    }
    largest = std::max(largest, std::fabs(value));
  }
  const int e = std::min(exponent_to(largest, formats::e4m3_max), largest_exponent);
  const float there = std::ldexp(1.0F, e);
  const float back = std::ldexp(1.0F, -e);
  for (float& value : values) {
    value = rounded(value * there) * back;
  }
}

template <class FoldRow>
Folded fold(const Tensor& matrix, std::span<const std::int64_t> rows, FoldRow fold_row) {
  const std::int64_t k = matrix.shape[1];
  Folded folded;
  folded.values.resize(rows.size() * static_cast<std::size_t>(k));
  parallel_for(std::ssize(rows), 0, [&](std::int64_t i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    const std::span<float> values(folded.values.data() + i * k, static_cast<std::size_t>(k));
    formats::decode_row(matrix, row, values);
    fold_row(row, values);
  });
  folded.view = Tensor::contiguous(folded.values.data(), Format::fp32, {std::ssize(rows), k});
  folded.view.global_scale = matrix.global_scale;
  return folded;
}

std::vector<std::int64_t> all_rows(const Tensor& matrix) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(matrix.shape[0]));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

Folded fold_weights(const Tensor& weights) { return fold_weights(weights, all_rows(weights)); }

Folded fold_weights(const Tensor& weights, std::span<const std::int64_t> rows) {
  return fold(weights, rows,
              [&](std::int64_t row, std::span<float> values) { fold_nvfp4_row(weights, row, values, true); });
}

Folded fold_tokens(const Tensor& tokens) { return fold_tokens(tokens, all_rows(tokens)); }

Folded fold_tokens(const Tensor& tokens, std::span<const std::int64_t> rows) {
  return fold(tokens, rows, [&](std::int64_t row, std::span<float> values) {
    if (format_traits(tokens.format).has_scales()) {
      fold_nvfp4_row(tokens, row, values, false);
    } else {
      fold_wide_row(values);
    }
  });
}

Verdict judge_fast_dual_gemm(const DualGemmProblem& problem, Rule rule, const Tensor& a, const Tensor& b1_gate,
                             const Tensor& b2_up, const Tensor& c, const Region& region, Accumulation accumulation,
                             int threads) {
  DualGemmProblem of_folded = problem;
  of_folded.a = Format::fp32;
  of_folded.b = Format::fp32;
  return judge_dual_gemm(of_folded, rule, fold_tokens(a).view, fold_weights(b1_gate).view, fold_weights(b2_up).view, c,
                         region, accumulation, threads);
}

}  // namespace thresher::reference
