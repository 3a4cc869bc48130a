#pragma once
/// Shared memory in the emulator: every access is checked.
#include "machine/emulator/engine/calls.hpp"
#include "machine/shared.hpp"

namespace thresher::machine {
namespace emulated {

template <typename T>
constexpr emulator::calls::Atomic add_of() {
  if constexpr (static_cast<T>(0.5) != T{0}) {
    return emulator::calls::Atomic::add_f32;
  } else {
    return sizeof(T) == 8 ? emulator::calls::Atomic::add_u64 : emulator::calls::Atomic::add_u32;
  }
}

}  // namespace emulated

template <typename T>
T Shared<T>::load(u32 index, Site site) const {
  T value;
  emulator::calls::shared_read(offset(index).address, &value, sizeof(T), emulator::calls::Space::own, site);
  return value;
}

template <typename T>
void Shared<T>::store(u32 index, const T& value, Site site) const {
  emulator::calls::shared_write(offset(index).address, &value, sizeof(T), emulator::calls::Space::own, site);
}

template <typename T>
T Shared<T>::atomic_add(u32 index, T value, Site site) const {
  emulator::calls::shared_atomic(offset(index).address, &value, sizeof(T), emulated::add_of<T>(), site);
  return value;
}

template <typename T>
T Remote<T>::load(u32 index, Site site) const {
  T value;
  emulator::calls::shared_read(offset(index).address, &value, sizeof(T), emulator::calls::Space::cluster, site);
  return value;
}

template <typename T>
void Remote<T>::store(u32 index, const T& value, Site site) const {
  emulator::calls::shared_write(offset(index).address, &value, sizeof(T), emulator::calls::Space::cluster, site);
}

}  // namespace thresher::machine
