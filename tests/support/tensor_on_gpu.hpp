#pragma once
/// Tensors of a test's cases in GPU memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/gpu.hpp"
#include "thresher/tensor.hpp"

namespace thresher::test {

/// A tensor of the CPU in GPU memory, between guard zones.
class TensorOnGpu {
 public:
  explicit TensorOnGpu(const Tensor& host)
      : values_(bytes_at(host.data, extent_bytes(host))),
        scales_(bytes_at(host.scales.data, host.scales.data == nullptr ? 0 : all_scale_bytes(host))),
        globals_(bytes_at(host.global_scale, host.global_scale == nullptr ? 0 : count(host) * sizeof(float))),
        tensor_(host) {
    tensor_.device = {DeviceKind::cuda, 0};
    tensor_.data = host.data == nullptr ? nullptr : values_.data();
    tensor_.scales.data = host.scales.data == nullptr ? nullptr : scales_.data();
    tensor_.global_scale = host.global_scale == nullptr ? nullptr : static_cast<const float*>(globals_.data());
  }
  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] const OnGpu& values() const { return values_; }
  [[nodiscard]] const OnGpu& scales() const { return scales_; }
  /// Copies what is there, scales included, to the tensor that this one was made of.
  void fetch(const Tensor& host) const {
    const auto copy = [](const OnGpu& from, const void* to) {
      const std::vector<std::uint8_t> bytes = from.download<std::uint8_t>();
      std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(const_cast<void*>(to)));
    };
    copy(values_, host.data);
    copy(scales_, host.scales.data);
  }
  [[nodiscard]] bool guards_intact() const { return values_.guards_intact() && scales_.guards_intact(); }

 private:
  static std::size_t count(const Tensor& host) { return host.rank == 3 ? static_cast<std::size_t>(host.shape[0]) : 1; }
  static std::size_t all_scale_bytes(const Tensor& host) {
    Tensor one = host;
    if (host.rank == 3) {
      one.rank = 2;
      one.shape = {host.shape[1], host.shape[2]};
    }
    return host.rank == 3 ? count(host) * scale_bytes(one) : scale_bytes(one);
  }
  static std::size_t extent_bytes(const Tensor& host) {
    std::int64_t elements = host.rank == 0 || host.elements() == 0 ? 0 : 1;
    for (int d = 0; elements > 0 && d < host.rank; ++d) {
      elements += (host.shape[d] - 1) * host.strides[d];
    }
    return static_cast<std::size_t>(elements * bits(host.format) / 8);
  }
  static std::vector<std::uint8_t> bytes_at(const void* data, std::size_t bytes) {
    const auto* const first = static_cast<const std::uint8_t*>(data);
    return first == nullptr ? std::vector<std::uint8_t>{} : std::vector<std::uint8_t>(first, first + bytes);
  }
  OnGpu values_;
  OnGpu scales_;
  OnGpu globals_;
  Tensor tensor_;
};

}  // namespace thresher::test
