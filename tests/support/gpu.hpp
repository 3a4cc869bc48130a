#pragma once
/// What GPU tests share.
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/memory.hpp"

/// Skips the test, saying why, where no GPU can be used.
#define SKIP_WITHOUT_GPU()                                      \
  if (!thresher::runtime::driver_status().problem.empty()) {    \
    GTEST_SKIP() << thresher::runtime::driver_status().problem; \
  }                                                             \
  static_assert(true)

namespace thresher::test {

/// GPU 0's memory with the bytes of a host array, between guard zones.
class OnGpu {
 public:
  static constexpr std::size_t zone_bytes = 4096;
  static constexpr std::uint8_t guard_byte = 0xA7;

  explicit OnGpu(std::size_t bytes) : buffer_(0, bytes + 2 * zone_bytes), bytes_(bytes) {
    std::vector<std::uint8_t> guards(bytes + 2 * zone_bytes, guard_byte);
    runtime::copy(buffer_.data(), guards.data(), guards.size(), 0);
  }
  template <class T>
  explicit OnGpu(const std::vector<T>& values) : OnGpu(values.size() * sizeof(T)) {
    runtime::copy(data(), values.data(), bytes_, 0);
  }

  [[nodiscard]] void* data() const { return static_cast<std::byte*>(buffer_.data()) + zone_bytes; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void fill(std::uint8_t byte) const {
    const std::vector<std::uint8_t> bytes(bytes_, byte);
    runtime::copy(data(), bytes.data(), bytes_, 0);
  }
  template <class T>
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(bytes_ / sizeof(T));
    runtime::copy(values.data(), data(), bytes_, 0);
    return values;
  }
  [[nodiscard]] bool guards_intact() const {
    std::vector<std::uint8_t> all(bytes_ + 2 * zone_bytes);
    runtime::copy(all.data(), buffer_.data(), all.size(), 0);
    const auto intact = [](std::span<const std::uint8_t> zone) {
      for (const std::uint8_t byte : zone) {
        if (byte != guard_byte) {
          return false;
        }
      }
      return true;
    };
    const std::span<const std::uint8_t> whole(all);
    return intact(whole.first(zone_bytes)) && intact(whole.last(zone_bytes));
  }

 private:
  runtime::DeviceBuffer buffer_;
  std::size_t bytes_;
};

}  // namespace thresher::test
