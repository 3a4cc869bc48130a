#pragma once
/// Random numbers that are the same on every machine for the same seed (the standard distributions are not).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

namespace thresher::arena {

/// xoshiro256** seeded through splitmix64. Not for cryptography.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      word = split_mix(seed);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Uniform in [0, limit), to within limit·2⁻³²; 0 < limit ≤ 2³².
  std::uint64_t below(std::uint64_t limit) { return ((next() >> 32) * limit) >> 32; }
  /// The same as a signed number.
  std::int64_t index(std::int64_t limit) { return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(limit))); }

  /// Standard normal (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[below(i)]);
    }
  }

 private:
  static constexpr std::uint64_t rotate_left(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t split_mix(std::uint64_t& seed) {
    std::uint64_t z = (seed += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_[4]{};
};

/// A seed for one purpose, so that adding a random draw somewhere does not change the inputs elsewhere.
inline std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ seed;
  for (const char character : purpose) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
  }
  return Random(hash ^ (seed << 1)).next();
}

}  // namespace thresher::arena
