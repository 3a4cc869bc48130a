#pragma once
/// Memory fences of one thread for its own accesses.
#include "machine/types.hpp"

namespace thresher::machine::fence {

/// Makes this thread's ordinary shared-memory accesses visible to the asynchronous proxy (TMA, wgmma). Each writing
/// thread executes it BEFORE the barrier that the issuing thread waits for.
TH_DEVICE void async_shared(Site site = here());
/// Makes this thread's Barrier::init visible to the cluster and to the asynchronous proxy; then sync the block or
/// cluster.
TH_DEVICE void barrier_init(Site site = here());
/// Orders this thread's memory accesses for observers in the block.
TH_DEVICE void block(Site site = here());

}  // namespace thresher::machine::fence

#if TH_GPU
#include "machine/ptx/fence.hpp"
#else
#include "machine/emulator/fence.hpp"
#endif
