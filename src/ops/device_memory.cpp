#include "ops/device_memory.hpp"

#include <cstdint>
#include <cstring>

#include "runtime/stream.hpp"
#include "thresher/workspace.hpp"

namespace thresher::ops {
namespace {

constexpr std::size_t alignment = 256;

std::size_t value_bytes(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements()) * static_cast<std::size_t>(bits(tensor.format)) / 8;
}

void copy_in(const DeviceMemory& to, const void* from) {
  if (to.bytes() == 0) {
    return;
  }
  if (to.device().kind == DeviceKind::cpu) {
    std::memcpy(to.data(), from, to.bytes());
  } else {
    runtime::copy(to.data(), from, to.bytes(), to.device().ordinal);
  }
}

std::vector<std::byte> copy_out(const DeviceMemory& memory) {
  std::vector<std::byte> bytes(memory.bytes());
  if (bytes.empty()) {
    return bytes;
  }
  if (memory.device().kind == DeviceKind::cpu) {
    std::memcpy(bytes.data(), memory.data(), bytes.size());
  } else {
    runtime::synchronize({}, memory.device().ordinal);
    runtime::copy(bytes.data(), memory.data(), bytes.size(), memory.device().ordinal);
  }
  return bytes;
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes, const Device& device) : bytes_(bytes), device_(device.id()) {
  if (bytes == 0) {
    return;
  }
  if (device.kind() == DeviceKind::cpu) {
    host_.resize(bytes + alignment);
    const auto start = reinterpret_cast<std::uintptr_t>(host_.data());
    data_ = host_.data() + (alignment - start % alignment) % alignment;
  } else {
    gpu_ = runtime::DeviceBuffer(device.id().ordinal, bytes, "a tensor");
    data_ = gpu_.data();
  }
}

DeviceTensor::DeviceTensor(const Tensor& host, const Device& device)
    : values_(host.data == nullptr ? 0 : value_bytes(host), device),
      scales_(scale_bytes(host), device),
      global_scale_(host.global_scale != nullptr ? global_scales(host) * sizeof(float) : 0, device),
      tensor_(host) {
  copy_in(values_, host.data);
  copy_in(scales_, host.scales.data);
  copy_in(global_scale_, host.global_scale);
  tensor_.data = values_.data();
  tensor_.scales.data = scales_.data();
  tensor_.global_scale = static_cast<const float*>(global_scale_.data());
  tensor_.device = device.id();
}

DeviceTensor::DeviceTensor(Format format, std::span<const std::int64_t> shape, const Device& device)
    : values_(value_bytes(Tensor::contiguous(nullptr, format, shape)), device),
      scales_(0, device),
      global_scale_(0, device),
      tensor_(Tensor::contiguous(values_.data(), format, shape, device.id())) {}

std::vector<std::byte> DeviceTensor::to_host() const { return copy_out(values_); }
std::vector<std::byte> DeviceTensor::scales_to_host() const { return copy_out(scales_); }

}  // namespace thresher::ops

namespace thresher {

class Workspace::Memory : public ops::DeviceMemory {
 public:
  using DeviceMemory::DeviceMemory;
};

Workspace::Workspace(const Device& device, std::size_t bytes)
    : memory_(std::make_shared<const Memory>(bytes, device)) {}

void* Workspace::data() const noexcept { return memory_->data(); }
std::size_t Workspace::bytes() const noexcept { return memory_->bytes(); }

}  // namespace thresher
