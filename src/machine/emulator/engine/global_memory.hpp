#pragma once
/// The buffers a launch may touch.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace thresher::emulator {

enum class Use : std::uint8_t {
  input,          ///< read only: a write is a finding
  output,         ///< holds nothing when the kernel starts: reading bytes it has not written is a finding
  input_output,   ///< holds data, may be read and written
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

  /// The buffer must outlive every launch with this object and not overlap another one.
  void add(std::string name, const void* data, std::size_t bytes, Use use);
  [[nodiscard]] const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;  // ascending addresses
};

}  // namespace thresher::emulator
