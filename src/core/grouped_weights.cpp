#include "core/grouped_weights.hpp"

#include "core/integers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <vector>

namespace thresher {
namespace {

std::byte* behind(void* data, std::int64_t elements, Format format) {
  return data == nullptr ? nullptr : static_cast<std::byte*>(data) + elements * bits(format) / 8;
}

const std::byte* behind(const Scales& scales, std::int64_t count) {
  return scales.data == nullptr ? nullptr
                                : static_cast<const std::byte*>(scales.data) + count * bits(scales.format) / 8;
}

/// The number of scales of `rows` rows of a row-major matrix [rows, k].
std::int64_t scale_count(const Scales& scales, std::int64_t rows, std::int64_t k) {
  return ceil_div(rows, scales.block.rows) * ceil_div(k, scales.block.columns);
}

/// Every `step`-th row of each expert, from `first` on.
Tensor rows_of(Tensor fused, std::int64_t first, std::int64_t step) {
  fused.data = behind(fused.data, first * fused.strides[1], fused.format);
  if (format_traits(fused.format).has_scales()) {
    fused.scales.data = behind(fused.scales, scale_count(fused.scales, first, fused.shape[2]));
  }
  fused.shape[1] /= 2;
  fused.strides[1] *= step;
  return fused;
}

/// The same for biases [E,2·N].
Tensor columns_of(Tensor fused, std::int64_t first, std::int64_t step) {
  fused.data = behind(fused.data, first, fused.format);
  fused.shape[1] /= 2;
  fused.strides[1] = step;
  return fused;
}

std::int64_t scale_bits(const Tensor& view) { return bits(view.scales.format); }

/// One matrix of a contiguous stack.
Tensor matrix_of_stack(const Tensor& stack) {
  Tensor matrix = stack;
  matrix.rank = 2;
  matrix.shape = {stack.shape[1], stack.shape[2]};
  matrix.strides = {stack.strides[1], stack.strides[2]};
  return matrix;
}

/// The number of scales of one matrix of a stack.
std::int64_t scales_of_one(const Tensor& stack) {
  return static_cast<std::int64_t>(scale_bytes(matrix_of_stack(stack))) * 8 / scale_bits(stack);
}

/// The number of scales from one matrix to the next, in a contiguous stack or a view of every second row of one.
std::int64_t scales_stride(const Tensor& view) {
  const std::int64_t k = view.shape[2];
  if (view.scales.layout == ScaleLayout::row_major) {
    return k == 0 ? 0 : scale_count(view.scales, view.strides[0] / k, k);
  }
  return scales_of_one(view);
}

}  // namespace

WeightViews weight_views(const GroupedWeights& weights) {
  if (!weights.order) {
    return {weights.b1, weights.b2, weights.bias1, weights.bias2};
  }
  const bool is_interleaved = weights.order == GateUpOrder::interleaved;
  const bool is_gate_first = weights.order != GateUpOrder::up_first;
  const std::int64_t step = is_interleaved ? 2 : 1;
  const std::int64_t second = is_interleaved ? 1 : weights.b1.shape[1] / 2;
  const std::int64_t gate = is_gate_first ? 0 : second;
  const std::int64_t up = is_gate_first ? second : 0;
  WeightViews views{rows_of(weights.b1, gate, step), rows_of(weights.b1, up, step), {}, {}};
  if (weights.up_global_scale != nullptr) {
    views.up.global_scale = weights.up_global_scale;
  }
  if (weights.has_bias()) {
    views.gate_bias = columns_of(weights.bias1, gate, step);
    views.up_bias = columns_of(weights.bias1, up, step);
  }
  return views;
}

ExpertMatrix expert_matrix(const Tensor& view, std::int64_t expert) {
  Tensor matrix = view;
  matrix.rank = 2;
  const std::int64_t n = view.shape[1];
  const std::int64_t k = view.shape[2];
  matrix.data = behind(view.data, expert * view.strides[0], view.format);
  matrix.shape = {n, k};
  matrix.strides = {view.strides[1], 1};
  matrix.global_scale = view.global_scale == nullptr ? nullptr : view.global_scale + expert;
  if (!format_traits(view.format).has_scales()) {
    return {matrix, 1};
  }
  matrix.scales.data = behind(view.scales, expert * scales_stride(view));
  const std::int64_t step = view.strides[1] / k;
  matrix.shape[0] = n == 0 ? 0 : (n - 1) * step + 1;
  matrix.strides[0] = k;
  return {matrix, step};
}

std::size_t scale_extent_bytes(const Tensor& view) noexcept {
  if (view.rank != 3 || view.elements() == 0) {
    return scale_bytes(view);
  }
  if (!format_traits(view.format).has_scales()) {
    return 0;
  }
  const std::int64_t k = view.shape[2];
  const std::int64_t rows = (view.shape[1] - 1) * (view.strides[1] / k) + 1;
  const std::int64_t last =
      view.scales.layout == ScaleLayout::row_major ? scale_count(view.scales, rows, k) : scales_stride(view);
  return static_cast<std::size_t>(((view.shape[0] - 1) * scales_stride(view) + last) * scale_bits(view) / 8);
}

Tensor slot_matrix(const Tensor& stack, std::int64_t slot) {
  Tensor matrix = matrix_of_stack(stack);
  matrix.data = behind(stack.data, slot * stack.strides[0], stack.format);
  matrix.global_scale = stack.global_scale == nullptr ? nullptr : stack.global_scale + slot;
  if (format_traits(stack.format).has_scales()) {
    matrix.scales.data = behind(stack.scales, slot * scales_of_one(stack));
  }
  return matrix;
}

std::string GroupedStatus::explain() const {
  struct Word {
    std::uint32_t flag;
    const char* says;
  };
  constexpr std::array words{Word{decreasing, "offsets decrease"}, Word{negative, "an offset or a count is negative"},
                             Word{beyond, "an offset or a count exceeds the rows there are"},
                             Word{skipped_rows, "rows were skipped, for their ids lie outside A"}};
  std::string text;
  for (const Word& word : words) {
    if (has(word.flag)) {
      text += fmt::format("{}{}", text.empty() ? "" : "; ", word.says);
    }
  }
  return text.empty() ? "offsets, counts and ids make sense" : text;
}

Tensor stack_of_one(const Tensor& matrix) {
  if (matrix.rank == 0) {
    return matrix;
  }
  Tensor stack = matrix;
  stack.rank = matrix.rank + 1;
  std::copy_n(matrix.shape.begin(), matrix.rank, stack.shape.begin() + 1);
  std::copy_n(matrix.strides.begin(), matrix.rank, stack.strides.begin() + 1);
  stack.shape[0] = 1;
  stack.strides[0] = matrix.shape[0] * matrix.strides[0];
  return stack;
}

}  // namespace thresher
