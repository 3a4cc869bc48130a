#include "thresher/tensor.hpp"

#include <algorithm>
#include <span>

#include "core/integers.hpp"

namespace thresher {

Tensor Tensor::contiguous(void* data, Format format, std::initializer_list<std::int64_t> shape, DeviceId device) {
  return contiguous(data, format, std::span(shape.begin(), shape.size()), device);
}

Tensor Tensor::contiguous(void* data, Format format, std::span<const std::int64_t> shape, DeviceId device) {
  Tensor tensor;
  tensor.data = data;
  tensor.format = format;
  tensor.device = device;
  for (const std::int64_t extent : shape) {
    tensor.shape[static_cast<std::size_t>(tensor.rank++)] = extent;
  }
  std::int64_t stride = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    tensor.strides[static_cast<std::size_t>(d)] = stride;
    stride = size_product(stride, tensor.shape[static_cast<std::size_t>(d)]);
  }
  return tensor;
}

Tensor Tensor::nvfp4(void* data, const std::uint8_t* scales, std::int64_t rows, std::int64_t k,
                     const float* global_scale, ScaleLayout layout, DeviceId device) {
  Tensor tensor = contiguous(data, Format::nvfp4, {rows, k}, device);
  tensor.scales.data = scales;
  tensor.scales.layout = layout;
  tensor.global_scale = global_scale;
  return tensor;
}

Tensor Tensor::fp8(void* data, Format format, OperandRole role, const float* scales, std::int64_t rows, std::int64_t k,
                   ScaleLayout layout, DeviceId device) {
  Tensor tensor = contiguous(data, format, {rows, k}, device);
  if (!format_traits(format).has_scales()) {
    tensor.global_scale = scales;
    return tensor;
  }
  tensor.scales.data = scales;
  tensor.scales.layout = layout;
  tensor.describe_scales(role);
  return tensor;
}

void Tensor::describe_scales(OperandRole role) noexcept {
  const FormatTraits& traits = format_traits(format);
  if (traits.has_scales() && rank > 0) {
    scales.format = traits.scale_format;
    scales.block = scale_block_of(format, role, shape[static_cast<std::size_t>(rank - 1)]);
  }
}

std::int64_t Tensor::elements() const noexcept {
  return size_product(std::span(shape.data(), static_cast<std::size_t>(rank)));
}

bool Tensor::is_contiguous() const noexcept {
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    if (shape[i] != 1 && strides[i] != stride) {
      return false;
    }
    stride = size_product(stride, shape[i]);
  }
  return true;
}

namespace {

/// The number of scales of a matrix of [rows, columns] scales in `layout`, padding included.
std::int64_t scale_count(std::int64_t rows, std::int64_t columns, ScaleLayout layout) noexcept {
  switch (layout) {
    case ScaleLayout::row_major: return size_product(rows, columns);
    case ScaleLayout::blocked: return size_product(size_product(ceil_div(rows, 128), ceil_div(columns, 4)), 512);
    case ScaleLayout::column_major: return size_product(columns, size_product(ceil_div(rows, 4), 4));
  }
  return 0;
}

}  // namespace

Scales::Block scale_block_of(Format format, OperandRole role, std::int64_t k) noexcept {
  const FormatTraits& traits = format_traits(format);
  if (!traits.has_scales()) {
    return {0, 0};
  }
  const std::int64_t columns =
      traits.values_per_scale == whole_row ? std::max<std::int64_t>(k, 1) : traits.values_per_scale;
  return {role == OperandRole::weights ? traits.weight_rows_per_scale : 1, columns};
}

bool may_lie(ScaleLayout layout, Format format, OperandRole role) noexcept {
  switch (layout) {
    case ScaleLayout::row_major: return true;
    case ScaleLayout::blocked: return format == Format::nvfp4;
    case ScaleLayout::column_major: return format == Format::fp8_block && role == OperandRole::tokens;
  }
  return false;
}

std::size_t scale_bytes(std::int64_t rows, std::int64_t k, ScaleLayout layout) noexcept {
  return scale_bytes(Format::nvfp4, OperandRole::tokens, rows, k, layout);
}

std::size_t scale_bytes(Format format, OperandRole role, std::int64_t rows, std::int64_t k,
                        ScaleLayout layout) noexcept {
  if (!format_traits(format).has_scales()) {
    return 0;
  }
  const Scales::Block block = scale_block_of(format, role, k);
  const std::int64_t count = scale_count(ceil_div(rows, block.rows), ceil_div(k, block.columns), layout);
  return static_cast<std::size_t>(size_product(count, bits(format_traits(format).scale_format) / 8));
}

std::size_t scale_bytes(const Tensor& matrix) noexcept {
  if (!format_traits(matrix.format).has_scales()) {
    return 0;
  }
  const Scales& scales = matrix.scales;
  const bool is_stack = matrix.rank == 3;
  const std::int64_t rows = matrix.shape[is_stack ? 1 : 0];
  const std::int64_t columns = matrix.shape[is_stack ? 2 : 1];
  const std::int64_t count =
      scale_count(ceil_div(rows, scales.block.rows), ceil_div(columns, scales.block.columns), scales.layout);
  return static_cast<std::size_t>(
      size_product(size_product(is_stack ? matrix.shape[0] : 1, count), bits(scales.format) / 8));
}

}  // namespace thresher
