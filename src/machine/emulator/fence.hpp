#pragma once
/// Fences in the emulator. Ordinary accesses take effect at once, so only the proxy fences and the barrier fence
/// matter.
#include "machine/emulator/engine/calls.hpp"
#include "machine/fence.hpp"

namespace thresher::machine::fence {

inline void async_shared(Site site) { emulator::calls::fence_async(site); }
inline void barrier_init(Site site) { emulator::calls::fence_barrier_init(site); }
inline void block(Site) {}

}  // namespace thresher::machine::fence
