#pragma once
/// The buffers that a launch may access.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace thresher::emulator {

enum class Use : std::uint8_t {
  input,          ///< read only: a write is a finding
  output,         ///< uninitialized at the start of the kernel: a read before a write is a finding
  input_output,   ///< initialized, may be read and written
  earlier_input,  ///< input that an earlier grid of the stream still writes: see LaunchShape::after_earlier_grid
};

/// Registered host buffers, by name. Addresses in kernels and tensor maps are host addresses.
class GlobalMemory {
 public:
  struct Buffer {
    std::string name;
    std::uint64_t address;
    std::uint64_t bytes;
    Use use;
  };

  /// The buffer must outlive every launch with this object and must not overlap another one.
  void add(std::string name, const void* data, std::size_t bytes, Use use);
  [[nodiscard]] const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;  // by ascending address
};

}  // namespace thresher::emulator
