#pragma once
/// Two sums over the 64-bit words of some memory, which find damaged bytes. A word is mixed with its index first, so
/// that swapped words are found too. Sums modulo 2^64 do not depend on the order of the additions.
#include "machine/global.hpp"

namespace thresher::strategies::word_sum {

using namespace thresher::machine;

inline constexpr u32 threads = 256;
inline constexpr u32 blocks = 512;

struct WordSums {
  u64 first = 0;
  u64 second = 0;

  TH_DEVICE void add(u64 word, u64 index) {
    u64 one = (word ^ (index * 0x9e3779b97f4a7c15U)) * 0xd6e8feb86659fd93U;
    u64 other = (word + (index + 1) * 0xa0761d6478bd642fU) * 0xe7037ed1a0b428dbU;
    one ^= one >> 32;
    other ^= other >> 29;
    first += one;
    second += other;
  }
};

struct WordSumParams {
  Global<u64> words;
  u64 count;
  Global<u64> sums;  ///< [2], to which is added
};

}  // namespace thresher::strategies::word_sum
