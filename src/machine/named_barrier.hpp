#pragma once
/// The block's 16 hardware barriers. Barrier 0 is block::sync's.
#include "machine/types.hpp"

namespace thresher::machine {

namespace block {
/// Waits for all threads of the block and orders their memory accesses.
TH_DEVICE void sync(Site site = here());
}  // namespace block

namespace named_barrier {
/// Waits until `threads` threads (a multiple of 32) have arrived at or synced on barrier `id` (1…15); all threads of a
/// warp call it together. Orders memory accesses of those that arrived before those that sync.
TH_DEVICE void sync(u32 id, u32 threads, Site site = here());
/// Counts as one of them without waiting.
TH_DEVICE void arrive(u32 id, u32 threads, Site site = here());
}  // namespace named_barrier

}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/named_barrier.hpp"
#else
#include "machine/emulator/named_barrier.hpp"
#endif
