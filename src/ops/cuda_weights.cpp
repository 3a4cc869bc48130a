#include "ops/cuda_weights.hpp"

#include "runtime/driver.hpp"

namespace thresher::ops {
namespace {

runtime::DeviceBuffer copy_of(const void* source, std::size_t bytes, int ordinal) {
  runtime::DeviceBuffer buffer(ordinal, bytes, "a copy of the weights");
  runtime::copy_async(buffer.data(), source, bytes, Stream{}, ordinal);
  return buffer;
}

/// Matrices that are on the GPU.
PackedContent held_on_gpu(const PackedWeights::Storage& weights) {
  if (!is_seen_whole(weights.b1_gate()) || !is_seen_whole(weights.b2_up())) {
    return weights.content();
  }
  PackedContent content = weights.PackedWeights::Storage::content();
  content.on_device = true;
  return content;
}

}  // namespace

GpuBytes::GpuBytes(const Bytes& bytes, bool on_device, int ordinal, const char* purpose) : bytes_(bytes.size()) {
  if (on_device || bytes.empty()) {
    data_ = bytes.empty() ? nullptr : const_cast<std::byte*>(bytes.data());  // who may write, calls know
    return;
  }
  owned_ = runtime::DeviceBuffer(ordinal, bytes.size(), purpose);
  data_ = owned_.data();
  runtime::copy(data_, bytes.data(), bytes.size(), ordinal);
}

Bytes GpuBytes::to_host(int ordinal) const {
  std::vector<std::byte> host(bytes_);
  if (bytes_ > 0) {
    runtime::copy(host.data(), data_, bytes_, ordinal);
  }
  return host;
}

std::size_t extent_bytes(const Tensor& tensor) {
  if (tensor.elements() == 0) {
    return 0;
  }
  std::int64_t last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return static_cast<std::size_t>((last + 1) * bits(tensor.format) / 8);
}

void require_matrix_on_gpu(const Tensor& matrix, int ordinal, const std::string& argument) {
  if (extent_bytes(matrix) == 0) {
    return;
  }
  runtime::require_on_gpu(matrix.data, ordinal, argument.c_str());
  if (format_traits(matrix.format).has_scales()) {
    runtime::require_on_gpu(matrix.scales.data, ordinal, (argument + ".scales").c_str());
  }
  if (matrix.global_scale != nullptr) {
    runtime::require_on_gpu(matrix.global_scale, ordinal, (argument + ".global_scale").c_str());
  }
}

DeviceMatrix::DeviceMatrix(const Tensor& source) : tensor_(source) {
  const int ordinal = source.device.ordinal;
  values_ = copy_of(source.data, extent_bytes(source), ordinal);
  tensor_.data = values_.data();
  if (format_traits(source.format).has_scales()) {
    scales_ = copy_of(source.scales.data, scale_bytes(source), ordinal);
    tensor_.scales.data = scales_.data();
  }
  if (source.global_scale != nullptr) {
    global_scale_ = copy_of(source.global_scale, global_scales(source) * sizeof(float), ordinal);
    tensor_.global_scale = static_cast<const float*>(global_scale_.data());
  }
  runtime::synchronize_device(ordinal);
}

PackedMatrix DeviceMatrix::to_host() const {
  const auto fetched = [&](const runtime::DeviceBuffer& buffer) {
    std::vector<std::byte> bytes(buffer.bytes());
    if (!bytes.empty()) {
      runtime::copy(bytes.data(), buffer.data(), bytes.size(), tensor_.device.ordinal);
    }
    return bytes;
  };
  const std::vector<std::byte> values = fetched(values_);
  const Bytes scales = fetched(scales_);
  const Bytes global_scale = fetched(global_scale_);
  Tensor host = tensor_;
  host.device = {};
  host.data = const_cast<std::byte*>(values.data());
  host.scales.data = scales.data();
  host.global_scale = global_scale.floats();
  return copied_matrix(host);
}

CudaWeights::CudaWeights(const Device& device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics)
    : CudaWeights(device, DeviceMatrix(b1_gate), DeviceMatrix(b2_up), numerics) {}

CudaWeights::CudaWeights(const Device& device, DeviceMatrix gate, DeviceMatrix up, Numerics numerics)
    : Storage(device, gate.tensor(), up.tensor(), numerics), gate_(std::move(gate)), up_(std::move(up)) {}

PackedContent CudaWeights::content() const {
  PackedContent content = outline(matrices_layout);
  content.matrices = {gate_.to_host(), up_.to_host()};
  return content;
}

PackedContent CudaWeights::held() const { return held_on_gpu(*this); }

PackedContent SeenWeights::held() const { return held_on_gpu(*this); }

PackedContent SeenWeights::content() const {
  PackedContent content = outline(matrices_layout);
  content.matrices = {DeviceMatrix(b1_gate()).to_host(), DeviceMatrix(b2_up()).to_host()};
  return content;
}

}  // namespace thresher::ops
