#pragma once
/// Shared and distributed shared memory on the GPU.
#include "machine/ptx/words.hpp"
#include "machine/shared.hpp"

namespace thresher::machine {

template <typename T>
TH_DEVICE T Shared<T>::load(u32 index, Site) const {
  T value;
  TH_LOAD("shared::cta", "r", T, offset(index).address, value)
  return value;
}

template <typename T>
TH_DEVICE void Shared<T>::store(u32 index, const T& value, Site) const {
  TH_STORE("shared::cta", "r", T, offset(index).address, value)
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
  T value;
  TH_LOAD("shared::cluster", "r", T, offset(index).address, value)
  return value;
}

template <typename T>
TH_DEVICE void Remote<T>::store(u32 index, const T& value, Site) const {
  TH_STORE("shared::cluster", "r", T, offset(index).address, value)
}

}  // namespace thresher::machine
