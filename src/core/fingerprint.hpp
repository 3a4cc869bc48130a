#pragma once
/// A 128-bit fingerprint of text (FNV-1a), for names of cache entries and to detect changed sources. It detects
/// accidents, not forgeries.
#include <cstdint>
#include <string>
#include <string_view>

namespace thresher {

class Fingerprint {
 public:
  /// Adds one field; its length is added too, so that {"ab", "c"} and {"a", "bc"} differ.
  Fingerprint& add(std::string_view field) noexcept;
  /// 32 hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  void add_byte(std::uint8_t byte) noexcept;
  std::uint64_t high_ = 0x6c62272e07bb0142U;  // the offset basis of 128-bit FNV-1a
  std::uint64_t low_ = 0x62b821756295c58dU;
};

}  // namespace thresher
