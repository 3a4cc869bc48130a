#pragma once
/// Global memory on the GPU.
#include "machine/global.hpp"

namespace thresher::machine {

namespace ptx {

/// Asm operands of a value of 2, 4, 8 or 16 bytes, as words.
template <int bytes>
struct Words;
template <>
struct Words<4> {
  u32 x;
};
template <>
struct Words<8> {
  u32 x, y;
};
template <>
struct Words<16> {
  u32 x, y, z, w;
};

template <typename T>
TH_DEVICE T* pointer(u64 address) {
  return reinterpret_cast<T*>(address);
}

template <typename T>
TH_DEVICE T load_read_only(u64 address, CacheHint hint) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  Words<sizeof(T)> words;
  if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(words.x) : "l"(address));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(words.x), "=r"(words.y) : "l"(address));
  } else if (hint == CacheHint::evict_first) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::evict_first.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(address));
  } else if (hint == CacheHint::evict_last) {
    asm volatile("ld.global.nc.L2::evict_last.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(address));
  } else {
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(address));
  }
  return __builtin_bit_cast(T, words);
}

}  // namespace ptx

template <typename T>
TH_DEVICE Global<T> Global<T>::offset(i64 elements) const {
  return {address + static_cast<u64>(elements) * sizeof(T)};
}

template <typename T>
TH_DEVICE T Global<T>::load(i64 index, Site) const {
  return ptx::pointer<const T>(address)[index];
}

template <typename T>
TH_DEVICE void Global<T>::store(i64 index, const T& value, Site) const {
  ptx::pointer<T>(address)[index] = value;
}

template <typename T>
TH_DEVICE T Global<T>::load_read_only(i64 index, CacheHint hint, Site) const {
  return ptx::load_read_only<T>(offset(index).address, hint);
}

template <typename T>
TH_DEVICE void Global<T>::store_streaming(i64 index, const T& value, Site) const {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  const u64 at = offset(index).address;
  const auto words = __builtin_bit_cast(ptx::Words<sizeof(T)>, value);
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(at), "r"(words.x) : "memory");
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(words.x), "r"(words.y) : "memory");
  } else {
    asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(words.x), "r"(words.y), "r"(words.z),
                 "r"(words.w)
                 : "memory");
  }
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
