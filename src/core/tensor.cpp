#include "thresher/tensor.hpp"

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
    stride *= tensor.shape[static_cast<std::size_t>(d)];
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

std::int64_t Tensor::elements() const noexcept {
  std::int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    count *= shape[static_cast<std::size_t>(d)];
  }
  return count;
}

bool Tensor::is_contiguous() const noexcept {
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    if (shape[i] != 1 && strides[i] != stride) {
      return false;
    }
    stride *= shape[i];
  }
  return true;
}

std::size_t scale_bytes(std::int64_t rows, std::int64_t k, ScaleLayout layout) noexcept {
  const std::int64_t columns = (k + 15) / 16;
  if (layout == ScaleLayout::row_major) {
    return static_cast<std::size_t>(rows * columns);
  }
  return static_cast<std::size_t>(((rows + 127) / 128) * ((columns + 3) / 4) * 512);
}

std::size_t scale_bytes(const Tensor& matrix) noexcept {
  return format_traits(matrix.format).has_scales() ? scale_bytes(matrix.shape[0], matrix.shape[1], matrix.scales.layout)
                                                   : 0;
}

}  // namespace thresher
