#pragma once
// What a test needs to launch a kernel in the emulator by itself, without a strategy's plan.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/tensor_map.hpp"

namespace thresher::strategies::test {

inline std::uint64_t address_of(const void* data) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
}

/// One buffer that starts where an allocation of a GPU may.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes + alignment), size_(bytes) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::uint8_t* data() {
    return bytes_.data() + (alignment - address_of(bytes_.data()) % alignment) % alignment;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t alignment = 256;
  std::vector<std::uint8_t> bytes_;
  std::size_t size_;
};

inline machine::TensorMap map_of(const void* data, machine::ElementType element, machine::Swizzle swizzle,
                                 std::initializer_list<std::uint64_t> extents,
                                 std::initializer_list<std::uint64_t> strides,
                                 std::initializer_list<std::uint32_t> box) {
  machine::TensorMapDescription map;
  map.address = address_of(data);
  map.element = element;
  map.swizzle = swizzle;
  map.rank = static_cast<std::uint32_t>(extents.size());
  std::copy(extents.begin(), extents.end(), map.extent);
  std::copy(strides.begin(), strides.end(), map.stride_bytes + 1);
  std::copy(box.begin(), box.end(), map.box);
  return emulator::encode_tensor_map(map);
}

inline emulator::Options options(std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  return options;
}

inline std::string text_of(const std::vector<emulator::Finding>& findings) {
  std::string text;
  for (const emulator::Finding& finding : findings) {
    text += to_string(finding);
  }
  return text;
}

}  // namespace thresher::strategies::test
