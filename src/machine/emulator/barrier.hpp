#pragma once
/// mbarriers in the emulator.
#include "machine/barrier.hpp"
#include "machine/emulator/engine/calls.hpp"
#include "machine/emulator/global.hpp"

namespace thresher::machine {

inline void RemoteBarrier::arrive(Site site) const {
  emulator::calls::barrier_arrive(address, 1, 0, emulator::calls::Space::cluster, site);
}
inline void RemoteBarrier::arrive_expect_bytes(u32 bytes, Site site) const {
  emulator::calls::barrier_arrive(address, 1, bytes, emulator::calls::Space::cluster, site);
}
inline void Barrier::init(u32 arrivals, Site site) const { emulator::calls::barrier_init(address, arrivals, site); }
inline void Barrier::arrive(u32 count, Site site) const {
  emulator::calls::barrier_arrive(address, count, 0, emulator::calls::Space::own, site);
}
inline void Barrier::expect_bytes(u32 count, Site site) const {
  emulator::calls::barrier_arrive(address, 0, count, emulator::calls::Space::own, site);
}
inline void Barrier::arrive_expect_bytes(u32 count, Site site) const {
  emulator::calls::barrier_arrive(address, 1, count, emulator::calls::Space::own, site);
}
inline void Barrier::wait(Phase phase, Site site) const { emulator::calls::barrier_wait(address, phase.parity, site); }
inline void Barrier::wait_cluster(Phase phase, Site site) const {
  emulator::calls::barrier_wait(address, phase.parity, site);
}

}  // namespace thresher::machine
