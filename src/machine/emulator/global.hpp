#pragma once
/// Global memory in the emulator: host memory of the launch's buffers, every access checked.
#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/shared.hpp"
#include "machine/global.hpp"

namespace thresher::machine {

template <typename T>
Global<T> Global<T>::offset(i64 elements) const {
  return {address + static_cast<u64>(elements) * sizeof(T)};
}

template <typename T>
T Global<T>::load(i64 index, Site site) const {
  T value;
  emulator::calls::global_read(offset(index).address, &value, sizeof(T), emulator::calls::GlobalRead::plain, site);
  return value;
}

template <typename T>
void Global<T>::store(i64 index, const T& value, Site site) const {
  emulator::calls::global_write(offset(index).address, &value, sizeof(T), emulator::calls::GlobalWrite::plain, site);
}

template <typename T>
T Global<T>::load_read_only(i64 index, CacheHint, Site site) const {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "the read-only path loads 4, 8 or 16 bytes");
  T value;
  emulator::calls::global_read(offset(index).address, &value, sizeof(T), emulator::calls::GlobalRead::read_only, site);
  return value;
}

template <typename T>
void Global<T>::store_streaming(i64 index, const T& value, Site site) const {
  store(index, value, site);
}

template <typename T>
void Global<T>::prefetch(i64) const {}

template <typename T>
T Global<T>::load_acquire(i64 index, Site site) const {
  T value;
  emulator::calls::global_read(offset(index).address, &value, sizeof(T), emulator::calls::GlobalRead::acquire, site);
  return value;
}

template <typename T>
void Global<T>::store_release(i64 index, T value, Site site) const {
  emulator::calls::global_write(offset(index).address, &value, sizeof(T), emulator::calls::GlobalWrite::release, site);
}

template <typename T>
T Global<T>::atomic_add(i64 index, T value, Site site) const {
  emulator::calls::global_atomic(offset(index).address, &value, nullptr, sizeof(T), emulated::add_of<T>(), false, site);
  return value;
}

template <typename T>
T Global<T>::atomic_add_acq_rel(i64 index, T value, Site site) const {
  emulator::calls::global_atomic(offset(index).address, &value, nullptr, sizeof(T), emulated::add_of<T>(), true, site);
  return value;
}

template <typename T>
T Global<T>::atomic_exchange(i64 index, T value, Site site) const {
  emulator::calls::global_atomic(offset(index).address, &value, nullptr, sizeof(T), emulator::calls::Atomic::exchange,
                                 true, site);
  return value;
}

template <typename T>
T Global<T>::atomic_compare_exchange(i64 index, T expected, T desired, Site site) const {
  emulator::calls::global_atomic(offset(index).address, &desired, &expected, sizeof(T),
                                 emulator::calls::Atomic::compare_exchange, true, site);
  return desired;
}

template <typename T>
void Global<T>::reduce_add(i64 index, T value, Site site) const {
  atomic_add(index, value, site);
}

}  // namespace thresher::machine
