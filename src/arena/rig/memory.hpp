#pragma once
/// Memory of a device for the arena, and buffers between guard zones.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "thresher/tensor.hpp"

namespace thresher::arena {

/// Allocates, fills and copies memory of one device. Every operation is complete on return.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual DeviceId device() const = 0;
  /// Aligned to 256 bytes; throws Error(out_of_memory).
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  virtual void fill(void* to, std::uint8_t byte, std::size_t bytes) = 0;
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;
  /// Bytes that can still be allocated.
  [[nodiscard]] virtual std::size_t available_bytes() = 0;
};

/// The memory of this process.
class HostMemory final : public Memory {
 public:
  [[nodiscard]] DeviceId device() const override { return {}; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  /// The least of the free memory, the limit of the control group, and the address-space limit.
  [[nodiscard]] std::size_t available_bytes() override;
};

/// A write into a guard zone.
struct GuardDamage {
  bool after = false;        ///< past the end; else before the beginning
  std::size_t distance = 0;  ///< bytes from the buffer's edge to the nearest damaged byte, 1 being next to it
  std::size_t bytes = 0;     ///< damaged bytes in that zone
};

/// Device memory between two guard zones. The one behind starts at the very next byte.
class GuardedBuffer {
 public:
  /// Bytes of each zone: the size of the buffer itself, within bounds. Zones of hundreds of small buffers then take no
  /// more time than the buffers.
  [[nodiscard]] static constexpr std::size_t zone_bytes(std::size_t buffer_bytes) {
    constexpr std::size_t alignment = 256;
    return std::clamp((buffer_bytes + alignment - 1) / alignment * alignment, min_zone_bytes, max_zone_bytes);
  }
  static constexpr std::size_t min_zone_bytes = std::size_t{8} << 10;
  static constexpr std::size_t max_zone_bytes = std::size_t{64} << 10;

  GuardedBuffer(Memory& memory, std::size_t bytes);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;
  ~GuardedBuffer();

  /// Aligned to 256 bytes; not null even for 0 bytes.
  [[nodiscard]] void* data() const noexcept { return base_ + zone_bytes(bytes_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void fill(std::uint8_t byte) { memory_->fill(data(), byte, bytes_); }
  [[nodiscard]] std::optional<GuardDamage> damage() const;

 private:
  Memory* memory_;
  std::byte* base_;
  std::size_t bytes_;
};

}  // namespace thresher::arena
