#include "ops/packed_content.hpp"

#include <cstring>

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

Bytes seen_floats(const float* floats, std::size_t count) {
  return floats == nullptr ? Bytes{} : Bytes::seen(floats, count * sizeof(float));
}

PackedMatrix packed_matrix(const Tensor& tensor, const Tensor& bias) {
  PackedMatrix matrix;
  matrix.values = packed_values(tensor);
  if (format_traits(tensor.format).has_scales()) {
    matrix.scale_layout = tensor.scales.layout;
    matrix.scales = Bytes::seen(tensor.scales.data, scale_bytes(tensor));
  }
  matrix.global_scale = seen_floats(tensor.global_scale, global_scales(tensor));
  matrix.bias = packed_values(bias);
  return matrix;
}

bool is_seen(const Tensor& tensor) { return tensor.rank == 0 || tensor.is_contiguous(); }

/// Shapes of [N,K] where there are no experts.
Tensor stack_or_matrix(void* data, Format format, std::initializer_list<std::int64_t> stack, std::int64_t experts,
                       DeviceId device) {
  const std::span<const std::int64_t> extents(stack.begin(), stack.size());
  return Tensor::contiguous(data, format, experts == 0 ? extents.subspan(1) : extents, device);
}

/// b1 or b2.
Tensor matrix_in(const PackedContent& content, std::size_t matrix, DeviceId device) {
  const PackedMatrix& of = content.matrices.at(matrix);
  void* const values = const_cast<std::byte*>(of.values.data());  // a Tensor says nothing of who may write
  Tensor tensor =
      stack_or_matrix(values, content.format, {content.experts, content.rows(), content.k}, content.experts, device);
  tensor.scales.data = of.scales.empty() ? nullptr : of.scales.data();
  tensor.scales.layout = of.scale_layout;
  tensor.describe_scales(OperandRole::weights);
  tensor.global_scale = of.global_scale.floats();
  return tensor;
}

Tensor bias_in(const PackedContent& content, std::size_t matrix, DeviceId device) {
  void* const data = const_cast<std::byte*>(content.matrices.at(matrix).bias.data());
  return Tensor::contiguous(data, *content.bias_format, {content.experts, content.rows()}, device);
}

}  // namespace

WeightsShape shape_of(const GroupedWeights& weights) {
  const Tensor& b1 = weights.b1;
  const std::size_t first = b1.rank == 3 ? 1 : 0;
  return {.experts = b1.rank == 3 ? b1.shape[0] : 0,
          .n = b1.shape[first] / (weights.order ? 2 : 1),
          .k = b1.shape[first + 1],
          .format = b1.format,
          .matrices = weights.matrices(),
          .has_bias = weights.has_bias()};
}

PackedContent outline(const GroupedWeights& weights, Numerics numerics, std::string layout) {
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
  PackedContent content = outline(weights, numerics, matrices_layout);
  content.matrices[0] = packed_matrix(weights.b1, weights.bias1);
  if (content.has_b2) {
    content.matrices[1] = packed_matrix(weights.b2, weights.bias2);
  } else {
    content.matrices[1].global_scale = seen_floats(weights.up_global_scale, static_cast<std::size_t>(content.experts));
  }
  return content;
}

bool is_seen_whole(const GroupedWeights& weights) {
  return is_seen(weights.b1) && is_seen(weights.b2) && is_seen(weights.bias1) && is_seen(weights.bias2);
}

Bytes packed_values(const Tensor& tensor) {
  if (tensor.rank == 0) {
    return {};
  }
  return tensor.is_contiguous()
             ? Bytes::seen(tensor.data, static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8))
             : Bytes(compact(tensor));
}

GroupedWeights weights_in(const PackedContent& content, DeviceId device) {
  GroupedWeights weights;
  weights.order = content.order;
  weights.b1 = matrix_in(content, 0, device);
  if (content.has_b2) {
    weights.b2 = matrix_in(content, 1, device);
  } else if (content.order) {
    weights.up_global_scale = content.matrices[1].global_scale.floats();
  }
  if (content.bias_format) {
    weights.bias1 = bias_in(content, 0, device);
    weights.bias2 = content.has_b2 ? bias_in(content, 1, device) : Tensor{};
  }
  return weights;
}

std::size_t extent_bytes(const Tensor& tensor) {
  if (tensor.rank == 0 || tensor.elements() == 0) {
    return 0;
  }
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return static_cast<std::size_t>((last + 1) * bits(tensor.format) / 8);
}

GroupedWeights copied(GroupedWeights weights, DeviceId device, const CopyBytes& copy) {
  const auto experts = static_cast<std::size_t>(shape_of(weights).experts);
  for (Tensor* tensor : {&weights.b1, &weights.b2, &weights.bias1, &weights.bias2}) {
    if (tensor->rank == 0) {
      continue;
    }
    tensor->device = device;
    tensor->data = copy(tensor->data, extent_bytes(*tensor));
    if (format_traits(tensor->format).has_scales()) {
      tensor->scales.data = copy(tensor->scales.data, scale_bytes(*tensor));
    }
    if (tensor->global_scale != nullptr) {
      tensor->global_scale =
          static_cast<const float*>(copy(tensor->global_scale, global_scales(*tensor) * sizeof(float)));
    }
  }
  if (weights.up_global_scale != nullptr) {
    weights.up_global_scale = static_cast<const float*>(copy(weights.up_global_scale, experts * sizeof(float)));
  }
  return weights;
}

}  // namespace thresher::ops
