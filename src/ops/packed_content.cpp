#include "ops/packed_content.hpp"

#include <cstring>

#include "ops/backend.hpp"
#include "ops/grouped_backend.hpp"

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
  content.matrices = {ops::packed_matrix(b1_gate_), ops::packed_matrix(b2_up_)};
  return content;
}

ops::PackedContent PackedGroupedWeights::Storage::content() const { return ops::packed_content(weights_, numerics_); }

}  // namespace thresher

namespace thresher::ops {
namespace {

/// The rows of a matrix or of a stack of them, one behind the other.
std::vector<std::byte> compact(const Tensor& tensor) {
  const auto last = static_cast<std::size_t>(tensor.rank - 1);
  const auto bytes_of = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements * bits(tensor.format) / 8);
  };
  const std::size_t row_bytes = bytes_of(tensor.shape[last]);
  const std::int64_t matrices = tensor.rank == 3 ? tensor.shape[0] : 1;
  const std::int64_t rows = tensor.shape[last - 1];
  std::vector<std::byte> all(static_cast<std::size_t>(matrices * rows) * row_bytes);
  std::byte* to = all.data();
  for (std::int64_t matrix = 0; matrix < matrices && row_bytes > 0; ++matrix) {
    for (std::int64_t row = 0; row < rows; ++row, to += row_bytes) {
      const std::int64_t begin = (tensor.rank == 3 ? matrix * tensor.strides[0] : 0) + row * tensor.strides[last - 1];
      std::memcpy(to, static_cast<const std::byte*>(tensor.data) + bytes_of(begin), row_bytes);
    }
  }
  return all;
}

std::size_t value_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8);
}

Bytes copy_of(const Bytes& bytes) { return std::vector<std::byte>(bytes.span().begin(), bytes.span().end()); }

Bytes seen_scales(const float* scales, std::size_t count) {
  return scales == nullptr ? Bytes{} : Bytes::seen(scales, count * sizeof(float));
}

}  // namespace

PackedMatrix packed_matrix(const Tensor& tensor) {
  PackedMatrix matrix;
  matrix.values = tensor.is_contiguous() ? Bytes::seen(tensor.data, value_bytes(tensor)) : Bytes(compact(tensor));
  if (format_traits(tensor.format).has_scales()) {
    matrix.scale_layout = tensor.scales.layout;
    matrix.scales = Bytes::seen(tensor.scales.data, scale_bytes(tensor));
  }
  matrix.global_scale = seen_scales(tensor.global_scale, global_scales(tensor));
  return matrix;
}

PackedMatrix copied_matrix(const Tensor& tensor) {
  PackedMatrix matrix = packed_matrix(tensor);
  matrix.values = copy_of(matrix.values);
  matrix.scales = copy_of(matrix.scales);
  matrix.global_scale = copy_of(matrix.global_scale);
  return matrix;
}

bool is_seen_whole(const Tensor& tensor) { return tensor.rank == 0 || tensor.is_contiguous(); }

bool is_seen_whole(const GroupedWeights& weights) {
  return is_seen_whole(weights.b1) && is_seen_whole(weights.b2) && is_seen_whole(weights.bias1) &&
         is_seen_whole(weights.bias2);
}

PackedContent grouped_outline(const GroupedWeights& weights, Numerics numerics, std::string layout) {
  const WeightsShape shape = shape_of(weights);
  PackedContent content;
  content.layout = std::move(layout);
  content.numerics = numerics;
  content.format = shape.format;
  content.experts = shape.experts;
  content.n = shape.n;
  content.k = shape.k;
  content.has_b2 = weights.b2.rank > 0;
  content.order = weights.order;
  if (weights.has_bias()) {
    content.bias_format = weights.bias1.format;
  }
  return content;
}

PackedContent packed_content(const GroupedWeights& weights, Numerics numerics) {
  PackedContent content = grouped_outline(weights, numerics, matrices_layout);
  const auto bias = [](const Tensor& of) {
    return of.rank == 0 ? Bytes{} : of.is_contiguous() ? Bytes::seen(of.data, value_bytes(of)) : Bytes(compact(of));
  };
  content.matrices[0] = packed_matrix(weights.b1);
  content.matrices[0].bias = bias(weights.bias1);
  if (content.has_b2) {
    content.matrices[1] = packed_matrix(weights.b2);
    content.matrices[1].bias = bias(weights.bias2);
  } else {
    content.matrices[1].global_scale = seen_scales(weights.up_global_scale, static_cast<std::size_t>(content.experts));
  }
  return content;
}

Tensor view(const PackedContent& content, std::size_t matrix, DeviceId device) {
  const PackedMatrix& of = content.matrices.at(matrix);
  void* values = const_cast<std::byte*>(of.values.data());  // a Tensor says nothing of who may write
  Tensor tensor = content.experts == 0 ? Tensor::contiguous(values, content.format, {content.n, content.k}, device)
                                       : Tensor::contiguous(values, content.format,
                                                            {content.experts, content.rows(), content.k}, device);
  tensor.scales.data = of.scales.empty() ? nullptr : of.scales.data();
  tensor.scales.layout = of.scale_layout;
  tensor.describe_scales(OperandRole::weights);
  tensor.global_scale = of.global_scale.floats();
  return tensor;
}

GroupedWeights grouped_view(const PackedContent& content, DeviceId device) {
  GroupedWeights weights;
  weights.order = content.order;
  weights.b1 = view(content, 0, device);
  if (content.has_b2) {
    weights.b2 = view(content, 1, device);
  } else if (content.order) {
    weights.up_global_scale = content.matrices[1].global_scale.floats();
  }
  const auto bias = [&](std::size_t matrix) {
    void* data = const_cast<std::byte*>(content.matrices.at(matrix).bias.data());
    return Tensor::contiguous(data, *content.bias_format, {content.experts, content.rows()}, device);
  };
  if (content.bias_format) {
    weights.bias1 = bias(0);
    weights.bias2 = content.has_b2 ? bias(1) : Tensor{};
  }
  return weights;
}

}  // namespace thresher::ops
