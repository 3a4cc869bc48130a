#pragma once
/// A thread's indices, in the emulator.
#include "machine/emulator/engine/calls.hpp"
#include "machine/launch.hpp"

namespace thresher::machine::launch {

inline u32 thread_index() { return emulator::calls::thread_index(); }
inline u32 thread_count() { return emulator::calls::thread_count(); }
inline Index block_index() {
  const auto at = emulator::calls::block_index();
  return {at.x, at.y, at.z};
}
inline Index block_count() {
  const auto count = emulator::calls::block_count();
  return {count.x, count.y, count.z};
}
inline Shared<u8> shared_memory() { return {emulator::calls::shared_base()}; }
inline u32 shared_memory_bytes() { return emulator::calls::shared_bytes(); }
inline void wait_for_earlier_grids(Site site) { emulator::calls::earlier_grids_wait(site); }
inline void release_dependents(Site site) { emulator::calls::dependents_release(site); }

}  // namespace thresher::machine::launch
