#pragma once
/// Blocks of one cluster: ranks, barriers, and each other's shared memory.
#include "machine/barrier.hpp"

namespace thresher::machine::cluster {

/// This block's rank among the cluster's `size()` blocks (1 without a cluster).
TH_DEVICE u32 rank();
TH_DEVICE u32 size();

/// The cluster's barrier; every thread of every block calls each once. arrive releases and wait acquires memory
/// accesses.
TH_DEVICE void arrive(Site site = here());
/// Does not release: it orders no memory access before it (a releasing arrive stalls behind outstanding TMA issue).
/// Enough after fence::barrier_init().
TH_DEVICE void arrive_relaxed(Site site = here());
TH_DEVICE void wait(Site site = here());
TH_DEVICE void sync(Site site = here());

/// The same offset in the shared memory of block `block_rank`.
template <typename T>
TH_DEVICE Remote<T> map(Shared<T> own, u32 block_rank);
TH_DEVICE RemoteBarrier map(Barrier own, u32 block_rank);

/// Asynchronous store of 4, 8 or 16 bytes (u32, float, or a Vector of them). It completes its bytes on `full`, a
/// barrier of the destination's block.
template <typename T>
TH_DEVICE void store_async(Remote<T> destination, const T& value, RemoteBarrier full, Site site = here());

}  // namespace thresher::machine::cluster

#if TH_GPU
#include "machine/ptx/cluster.hpp"
#else
#include "machine/emulator/cluster.hpp"
#endif
