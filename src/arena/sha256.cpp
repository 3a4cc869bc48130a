#include "arena/sha256.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace thresher::arena {
namespace {

using Word = std::uint32_t;
using State = std::array<Word, 8>;
constexpr std::size_t block_bytes = 64;
constexpr std::size_t rounds = 64;

/// The standard's constants: the first 32 bits behind the binary point of the cube roots of the first 64 primes, and
/// of the square roots of the first 8.
struct Constants {
  std::array<Word, rounds> round{};
  State start{};
};

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      return false;
    }
  }
  return true;
}

Word fraction_bits(long double root) { return static_cast<Word>((root - std::floor(root)) * 0x1p32L); }

Constants make_constants() {
  Constants constants;
  std::size_t found = 0;
  for (int number = 2; found < rounds; ++number) {
    if (is_prime(number)) {
      constants.round[found] = fraction_bits(std::cbrt(static_cast<long double>(number)));
      if (found < constants.start.size()) {
        constants.start[found] = fraction_bits(std::sqrt(static_cast<long double>(number)));
      }
      ++found;
    }
  }
  return constants;
}

const Constants& constants() {
  static const Constants made = make_constants();
  return made;
}

void add_block(State& state, const unsigned char* block) {
  std::array<Word, rounds> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) {
      w[i] = w[i] << 8 | block[4 * i + byte];
    }
  }
  for (std::size_t i = 16; i < rounds; ++i) {
    const Word early = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const Word late = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + early + w[i - 7] + late;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < rounds; ++i) {
    const Word one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                     constants().round[i] + w[i];
    const Word two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] += added[i];
  }
}

/// The text, a one bit, zeros and its length in bits, in whole blocks.
std::string padded(std::string_view text) {
  std::string all(text);
  all += '\x80';
  while (all.size() % block_bytes != block_bytes - 8) {
    all += '\0';
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    all += static_cast<char>(std::uint64_t{text.size()} * 8 >> shift);
  }
  return all;
}

}  // namespace

std::string sha256(std::string_view text) {
  State state = constants().start;
  const std::string all = padded(text);
  for (std::size_t at = 0; at < all.size(); at += block_bytes) {
    add_block(state, reinterpret_cast<const unsigned char*>(all.data()) + at);
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const Word word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      hex += digits[word >> shift & 0xF];
    }
  }
  return hex;
}

}  // namespace thresher::arena
