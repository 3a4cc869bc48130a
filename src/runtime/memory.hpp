#pragma once
/// GPU memory and page-locked host memory, owned; copies and fills, asynchronous on a stream.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "thresher/device.hpp"

namespace thresher::runtime {

/// Memory of one GPU, aligned to 256 bytes, released on destruction. Empty after a move and for 0 bytes.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// `purpose` names it in the error of a full GPU, e.g. "the weights". Throws Error(out_of_memory).
  DeviceBuffer(int ordinal, std::size_t bytes, const char* purpose = "a buffer");
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBuffer();

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] DeviceId device() const noexcept { return {DeviceKind::cuda, ordinal_}; }

  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(ordinal_, other.ordinal_);
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  int ordinal_ = 0;
};

/// Copies between any two memories; the host's side must stay valid until the stream has completed the copy.
void copy_async(void* to, const void* from, std::size_t bytes, Stream stream, int ordinal);
/// The same, finished on return.
void copy(void* to, const void* from, std::size_t bytes, int ordinal);
/// Sets every byte of GPU memory.
void fill_async(void* memory, std::uint8_t byte, std::size_t bytes, Stream stream, int ordinal);

}  // namespace thresher::runtime
