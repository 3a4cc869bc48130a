#pragma once
/// Shared and distributed shared memory on the GPU.
#include "machine/shared.hpp"

namespace thresher::machine {

namespace ptx {

/// Loads and stores of 1, 2, 4, 8 or 16 bytes in a state space, by asm text.
#define TH_SHARED_LOAD(space, T, address, value)                                                                  \
  if constexpr (sizeof(T) == 1) {                                                                                 \
    u32 word;                                                                                                     \
    asm volatile("ld." space ".u8 %0, [%1];" : "=r"(word) : "r"(address) : "memory");                             \
    value = __builtin_bit_cast(T, static_cast<u8>(word));                                                         \
  } else if constexpr (sizeof(T) == 2) {                                                                          \
    u16 word;                                                                                                     \
    asm volatile("ld." space ".b16 %0, [%1];" : "=h"(word) : "r"(address) : "memory");                            \
    value = __builtin_bit_cast(T, word);                                                                          \
  } else if constexpr (sizeof(T) == 4) {                                                                          \
    u32 word;                                                                                                     \
    asm volatile("ld." space ".b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");                            \
    value = __builtin_bit_cast(T, word);                                                                          \
  } else if constexpr (sizeof(T) == 8) {                                                                          \
    Pair words;                                                                                                   \
    asm volatile("ld." space ".v2.b32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "r"(address) : "memory"); \
    value = __builtin_bit_cast(T, words);                                                                         \
  } else {                                                                                                        \
    Quad words;                                                                                                   \
    asm volatile("ld." space ".v4.b32 {%0, %1, %2, %3}, [%4];"                                                    \
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)                                     \
                 : "r"(address)                                                                                   \
                 : "memory");                                                                                     \
    value = __builtin_bit_cast(T, words);                                                                         \
  }

#define TH_SHARED_STORE(space, T, address, value)                                                              \
  if constexpr (sizeof(T) == 1) {                                                                              \
    const u32 word = __builtin_bit_cast(u8, value);                                                            \
    asm volatile("st." space ".u8 [%0], %1;" ::"r"(address), "r"(word) : "memory");                            \
  } else if constexpr (sizeof(T) == 2) {                                                                       \
    asm volatile("st." space ".b16 [%0], %1;" ::"r"(address), "h"(__builtin_bit_cast(u16, value)) : "memory"); \
  } else if constexpr (sizeof(T) == 4) {                                                                       \
    asm volatile("st." space ".b32 [%0], %1;" ::"r"(address), "r"(__builtin_bit_cast(u32, value)) : "memory"); \
  } else if constexpr (sizeof(T) == 8) {                                                                       \
    const auto words = __builtin_bit_cast(Pair, value);                                                        \
    asm volatile("st." space ".v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(words.x), "r"(words.y) : "memory"); \
  } else {                                                                                                     \
    const auto words = __builtin_bit_cast(Quad, value);                                                        \
    asm volatile("st." space ".v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words.x), "r"(words.y),     \
                 "r"(words.z), "r"(words.w)                                                                    \
                 : "memory");                                                                                  \
  }

struct Pair {
  u32 x, y;
};
struct Quad {
  u32 x, y, z, w;
};

}  // namespace ptx

template <typename T>
TH_DEVICE T Shared<T>::load(u32 index, Site) const {
  using namespace ptx;
  T value;
  TH_SHARED_LOAD("shared::cta", T, offset(index).address, value)
  return value;
}

template <typename T>
TH_DEVICE void Shared<T>::store(u32 index, const T& value, Site) const {
  using namespace ptx;
  TH_SHARED_STORE("shared::cta", T, offset(index).address, value)
}

template <typename T>
TH_DEVICE T Shared<T>::atomic_add(u32 index, T value, Site) const {
  static_assert(is_same<T, u32> || is_same<T, float>);
  T previous;
  if constexpr (is_same<T, u32>) {
    asm volatile("atom.relaxed.cta.shared::cta.add.u32 %0, [%1], %2;"
                 : "=r"(previous)
                 : "r"(offset(index).address), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.cta.shared::cta.add.f32 %0, [%1], %2;"
                 : "=f"(previous)
                 : "r"(offset(index).address), "f"(value)
                 : "memory");
  }
  return previous;
}

template <typename T>
TH_DEVICE T Remote<T>::load(u32 index, Site) const {
  using namespace ptx;
  T value;
  TH_SHARED_LOAD("shared::cluster", T, offset(index).address, value)
  return value;
}

template <typename T>
TH_DEVICE void Remote<T>::store(u32 index, const T& value, Site) const {
  using namespace ptx;
  TH_SHARED_STORE("shared::cluster", T, offset(index).address, value)
}

#undef TH_SHARED_LOAD
#undef TH_SHARED_STORE

}  // namespace thresher::machine
