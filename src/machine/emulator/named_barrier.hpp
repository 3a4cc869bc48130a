#pragma once
/// Block-wide barriers in the emulator.
#include "machine/emulator/engine/calls.hpp"
#include "machine/named_barrier.hpp"

namespace thresher::machine {

namespace block {
inline void sync(Site site) { emulator::calls::block_sync(0, 0, true, site); }
}  // namespace block

namespace named_barrier {
inline void sync(u32 id, u32 threads, Site site) { emulator::calls::block_sync(id, threads, true, site); }
inline void arrive(u32 id, u32 threads, Site site) { emulator::calls::block_sync(id, threads, false, site); }
}  // namespace named_barrier

}  // namespace thresher::machine
