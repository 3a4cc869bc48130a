#pragma once
/// Global memory on the GPU.
#include "machine/global.hpp"
#include "machine/ptx/words.hpp"

namespace thresher::machine {

namespace ptx {

template <typename T>
TH_DEVICE T* pointer(u64 address) {
  return reinterpret_cast<T*>(address);
}

/// L2 policy words, as createpolicy makes them for a fraction of 1.
TH_DEVICE u64 policy(CacheHint hint) {
  u64 word;
  if (hint == CacheHint::evict_first) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(word));
  } else {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(word));
  }
  return word;
}

template <typename T>
TH_DEVICE T load_read_only(u64 address, CacheHint hint) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if constexpr (sizeof(T) == 4) {
    u32 word;
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(word) : "l"(address));
    return __builtin_bit_cast(T, word);
  } else if constexpr (sizeof(T) == 8) {
    Pair words;
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "l"(address));
    return __builtin_bit_cast(T, words);
  } else {
    Quad words;
    if (hint != CacheHint::none) {
      asm volatile("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                   : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                   : "l"(address), "l"(policy(hint)));
    } else {
      asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                   : "l"(address));
    }
    return __builtin_bit_cast(T, words);
  }
}

}  // namespace ptx

template <typename T>
TH_DEVICE Global<T> Global<T>::offset(i64 elements) const {
  return {address + static_cast<u64>(elements) * sizeof(T)};
}

template <typename T>
TH_DEVICE T Global<T>::load(i64 index, Site) const {
  T value;
  TH_LOAD("global", "l", T, offset(index).address, value)
  return value;
}

template <typename T>
TH_DEVICE void Global<T>::store(i64 index, const T& value, Site) const {
  TH_STORE("global", "l", T, offset(index).address, value)
}

template <typename T>
TH_DEVICE T Global<T>::load_read_only(i64 index, CacheHint hint, Site) const {
  return ptx::load_read_only<T>(offset(index).address, hint);
}

template <typename T>
TH_DEVICE void Global<T>::store_streaming(i64 index, const T& value, Site) const {
  TH_STORE("global.cs", "l", T, offset(index).address, value)
}

template <typename T>
TH_DEVICE void Global<T>::prefetch(i64 index) const {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(offset(index).address));
}

template <typename T>
TH_DEVICE T Global<T>::load_acquire(i64 index, Site) const {
  T value;
  if constexpr (sizeof(T) == 4) {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(offset(index).address) : "memory");
  } else {
    asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(offset(index).address) : "memory");
  }
  return value;
}

template <typename T>
TH_DEVICE void Global<T>::store_release(i64 index, T value, Site) const {
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(offset(index).address), "r"(value) : "memory");
  } else {
    asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(offset(index).address), "l"(value) : "memory");
  }
}

template <typename T>
TH_DEVICE T Global<T>::atomic_add(i64 index, T value, Site) const {
  return atomicAdd(ptx::pointer<T>(address) + index, value);
}

template <typename T>
TH_DEVICE T Global<T>::atomic_add_acq_rel(i64 index, T value, Site) const {
  T previous;
  if constexpr (sizeof(T) == 4) {
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(previous)
                 : "l"(offset(index).address), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(previous)
                 : "l"(offset(index).address), "l"(value)
                 : "memory");
  }
  return previous;
}

template <typename T>
TH_DEVICE T Global<T>::atomic_exchange(i64 index, T value, Site) const {
  return atomicExch(ptx::pointer<T>(address) + index, value);
}

template <typename T>
TH_DEVICE T Global<T>::atomic_compare_exchange(i64 index, T expected, T desired, Site) const {
  return atomicCAS(ptx::pointer<T>(address) + index, expected, desired);
}

template <typename T>
TH_DEVICE void Global<T>::reduce_add(i64 index, T value, Site) const {
  atomicAdd(ptx::pointer<T>(address) + index, value);
}

}  // namespace thresher::machine
