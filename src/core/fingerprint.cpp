#include "core/fingerprint.hpp"

namespace thresher {

Fingerprint& Fingerprint::add(std::string_view field) noexcept {
  for (std::uint64_t rest = field.size(), i = 0; i < sizeof rest; ++i, rest >>= 8) {
    add_byte(static_cast<std::uint8_t>(rest));
  }
  for (const char c : field) {
    add_byte(static_cast<std::uint8_t>(c));
  }
  return *this;
}

// hash = (hash xor byte) * (2^88 + 0x13b) modulo 2^128, in 64-bit halves.
void Fingerprint::add_byte(std::uint8_t byte) noexcept {
  constexpr std::uint64_t prime_low = 0x13b;
  constexpr int prime_high_shift = 88 - 64;
  low_ ^= byte;
  const std::uint64_t low_product = (low_ & 0xffffffffU) * prime_low;
  const std::uint64_t middle = (low_ >> 32) * prime_low + (low_product >> 32);
  high_ = high_ * prime_low + (middle >> 32) + (low_ << prime_high_shift);
  low_ = (middle << 32) | (low_product & 0xffffffffU);
}

std::string Fingerprint::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {high_, low_}) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      text += digits[(half >> shift) & 0xfU];
    }
  }
  return text;
}

}  // namespace thresher
