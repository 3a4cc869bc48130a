#include "ops/packed_content.hpp"

#include <cstring>

#include "ops/backend.hpp"

namespace thresher {

ops::PackedContent PackedWeights::Storage::outline(std::string layout) const {
  ops::PackedContent content;
  content.layout = std::move(layout);
  content.numerics = numerics_;
  content.format = b1_gate_.format;
  content.n = b1_gate_.shape[0];
  content.k = b1_gate_.shape[1];
  return content;
}

ops::PackedContent PackedWeights::Storage::content() const {
  ops::PackedContent content = outline(ops::matrices_layout);
  content.matrices = {ops::host_matrix(b1_gate_), ops::host_matrix(b2_up_)};
  return content;
}

}  // namespace thresher

namespace thresher::ops {

HostMatrix host_matrix(const Tensor& tensor) {
  HostMatrix matrix;
  const auto row_bytes = static_cast<std::size_t>(tensor.shape[1] * bits(tensor.format) / 8);
  const auto row_distance = static_cast<std::size_t>(tensor.strides[0] * bits(tensor.format) / 8);
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  matrix.values.resize(rows * row_bytes);
  for (std::size_t row = 0; row < rows && row_bytes > 0; ++row) {
    std::memcpy(matrix.values.data() + row * row_bytes, static_cast<const std::byte*>(tensor.data) + row * row_distance,
                row_bytes);
  }
  if (format_traits(tensor.format).has_scales()) {
    matrix.scale_layout = tensor.scales.layout;
    const auto* scales = static_cast<const std::byte*>(tensor.scales.data);
    matrix.scales.assign(scales, scales + scale_bytes(tensor));
  }
  if (tensor.global_scale != nullptr) {
    matrix.global_scale = {*tensor.global_scale};
  }
  return matrix;
}

Tensor view(const PackedContent& content, std::size_t matrix) {
  const HostMatrix& host = content.matrices.at(matrix);
  void* values = const_cast<std::byte*>(host.values.data());  // a Tensor says nothing of who may write
  Tensor tensor = Tensor::contiguous(values, content.format, {content.n, content.k});
  tensor.scales.data = host.scales.empty() ? nullptr : host.scales.data();
  tensor.scales.layout = host.scale_layout;
  tensor.describe_scales(OperandRole::weights);
  tensor.global_scale = host.global_scale.empty() ? nullptr : host.global_scale.data();
  return tensor;
}

}  // namespace thresher::ops
