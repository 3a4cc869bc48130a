#pragma once
/// GPU memory that can be shared with another process.
#include <cstddef>
#include <utility>

namespace thresher::runtime {

/// Memory of one GPU that this process has mapped and others can map: they receive a descriptor over a socket. It is
/// freed when no process has it mapped any more.
class ExportedMemory {
 public:
  /// At least `bytes`, more than 0. Throws Error(out_of_memory), and Error(device) if the driver cannot share memory.
  ExportedMemory(int ordinal, std::size_t bytes);
  ExportedMemory(ExportedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        allocation_(std::exchange(other.allocation_, 0)),
        ordinal_(other.ordinal_) {}
  ExportedMemory& operator=(ExportedMemory&&) = delete;
  ~ExportedMemory();

  [[nodiscard]] void* data() const noexcept { return data_; }
  /// A multiple of the driver's page size.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// A new one, which the caller closes. Throws Error(device).
  [[nodiscard]] int descriptor() const;

 private:
  void release() noexcept;

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  unsigned long long allocation_ = 0;  // the driver's handle
  int ordinal_ = 0;
};

}  // namespace thresher::runtime
