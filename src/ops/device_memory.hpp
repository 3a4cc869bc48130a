#pragma once
/// Memory on whichever device an operation runs, and tensors copied there and back. For callers that hold their data on
/// the host, as the command line does; plan and run themselves never copy.
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "runtime/memory.hpp"
#include "thresher/device.hpp"
#include "thresher/tensor.hpp"

namespace thresher::ops {

/// Aligned to 256 bytes; null for 0 bytes. Throws Error(out_of_memory).
class DeviceMemory {
 public:
  DeviceMemory(std::size_t bytes, const Device& device);
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

 private:
  std::size_t bytes_;
  DeviceId device_;
  std::vector<std::byte> host_;
  runtime::DeviceBuffer gpu_;
  void* data_ = nullptr;
};

/// A contiguous tensor on a device, with its scales and global scales.
class DeviceTensor {
 public:
  /// A copy of a contiguous CPU tensor; of none, no memory.
  DeviceTensor(const Tensor& host, const Device& device);
  /// Uninitialised.
  DeviceTensor(Format format, std::span<const std::int64_t> shape, const Device& device);
  DeviceTensor(Format format, std::initializer_list<std::int64_t> shape, const Device& device)
      : DeviceTensor(format, std::span(shape.begin(), shape.size()), device) {}

  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
  /// All elements, once the device has finished its work.
  [[nodiscard]] std::vector<std::byte> to_host() const;
  /// Likewise all scales.
  [[nodiscard]] std::vector<std::byte> scales_to_host() const;

 private:
  DeviceMemory values_;
  DeviceMemory scales_;
  DeviceMemory global_scale_;
  Tensor tensor_;
};

}  // namespace thresher::ops
