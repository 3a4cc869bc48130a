#pragma once
/// cp.async in the emulator.
#include "machine/async_copy.hpp"
#include "machine/emulator/barrier.hpp"
#include "machine/emulator/engine/calls.hpp"

namespace thresher::machine::async_copy {

inline void copy16(Shared<u8> destination, Global<u8> source, bool valid, Site site) {
  emulator::calls::copy_async(destination.address, source.address, 16, valid, site);
}
inline void copy4(Shared<u8> destination, Global<u8> source, bool valid, Site site) {
  emulator::calls::copy_async(destination.address, source.address, 4, valid, site);
}
inline void commit(Site site) { emulator::calls::copy_async_commit(site); }
template <int pending>
void wait(Site site) {
  emulator::calls::copy_async_wait(pending, site);
}
inline void arrive_when_done(Barrier barrier, Site site) { emulator::calls::copy_async_arrive(barrier.address, site); }

}  // namespace thresher::machine::async_copy
