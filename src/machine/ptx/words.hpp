#pragma once
/// Loads and stores of 1, 2, 4, 8 or 16 bytes in any state space.
#include "machine/types.hpp"

namespace thresher::machine::ptx {

struct Pair {
  u32 x, y;
};
struct Quad {
  u32 x, y, z, w;
};

}  // namespace thresher::machine::ptx

/// `space` is asm text such as "shared::cta", `kind` the constraint of an address in it: "r" or "l".
#define TH_LOAD(space, kind, T, address, value)                                                                    \
  if constexpr (sizeof(T) == 1) {                                                                                  \
    u32 word;                                                                                                      \
    asm volatile("ld." space ".u8 %0, [%1];" : "=r"(word) : kind(address) : "memory");                             \
    value = __builtin_bit_cast(T, static_cast<u8>(word));                                                          \
  } else if constexpr (sizeof(T) == 2) {                                                                           \
    u16 word;                                                                                                      \
    asm volatile("ld." space ".b16 %0, [%1];" : "=h"(word) : kind(address) : "memory");                            \
    value = __builtin_bit_cast(T, word);                                                                           \
  } else if constexpr (sizeof(T) == 4) {                                                                           \
    u32 word;                                                                                                      \
    asm volatile("ld." space ".b32 %0, [%1];" : "=r"(word) : kind(address) : "memory");                            \
    value = __builtin_bit_cast(T, word);                                                                           \
  } else if constexpr (sizeof(T) == 8) {                                                                           \
    ptx::Pair words;                                                                                               \
    asm volatile("ld." space ".v2.b32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : kind(address) : "memory"); \
    value = __builtin_bit_cast(T, words);                                                                          \
  } else {                                                                                                         \
    ptx::Quad words;                                                                                               \
    asm volatile("ld." space ".v4.b32 {%0, %1, %2, %3}, [%4];"                                                     \
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)                                      \
                 : kind(address)                                                                                   \
                 : "memory");                                                                                      \
    value = __builtin_bit_cast(T, words);                                                                          \
  }

#define TH_STORE(space, kind, T, address, value)                                                                \
  if constexpr (sizeof(T) == 1) {                                                                               \
    const u32 word = __builtin_bit_cast(u8, value);                                                             \
    asm volatile("st." space ".u8 [%0], %1;" ::kind(address), "r"(word) : "memory");                            \
  } else if constexpr (sizeof(T) == 2) {                                                                        \
    asm volatile("st." space ".b16 [%0], %1;" ::kind(address), "h"(__builtin_bit_cast(u16, value)) : "memory"); \
  } else if constexpr (sizeof(T) == 4) {                                                                        \
    asm volatile("st." space ".b32 [%0], %1;" ::kind(address), "r"(__builtin_bit_cast(u32, value)) : "memory"); \
  } else if constexpr (sizeof(T) == 8) {                                                                        \
    const auto words = __builtin_bit_cast(ptx::Pair, value);                                                    \
    asm volatile("st." space ".v2.b32 [%0], {%1, %2};" ::kind(address), "r"(words.x), "r"(words.y) : "memory"); \
  } else {                                                                                                      \
    const auto words = __builtin_bit_cast(ptx::Quad, value);                                                    \
    asm volatile("st." space ".v4.b32 [%0], {%1, %2, %3, %4};" ::kind(address), "r"(words.x), "r"(words.y),     \
                 "r"(words.z), "r"(words.w)                                                                     \
                 : "memory");                                                                                   \
  }
