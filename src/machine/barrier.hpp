#pragma once
/// mbarrier: counts arrivals and asynchronous bytes; a phase completes when both reach zero, and the next one begins.
#include "machine/global.hpp"
#include "machine/shared.hpp"

namespace thresher::machine {

/// The parity of the phase that a thread waits for: 0 for its first, 1 for its second, 0 for its third… A wait for the
/// parity *opposite* to the current phase's returns at once: a producer that starts with Phase{1} finds the stages of a
/// new ring free.
struct Phase {
  u32 parity = 0;
  TH_DEVICE void flip() { parity ^= 1U; }
};

/// The same barrier object in another block of the cluster; made by cluster::map.
struct RemoteBarrier {
  u32 address = 0;
  /// One arrival, release. The default scope is deliberate: a cluster-scope release drains every outstanding access
  /// first.
  TH_DEVICE void arrive(Site site = here()) const;
  /// Announces bytes and arrives once, on the other block's barrier.
  TH_DEVICE void arrive_expect_bytes(u32 bytes, Site site = here()) const;
};

/// A handle to the 8 bytes of an mbarrier in this block's shared memory (8-byte aligned).
struct Barrier {
  u32 address = 0;

  static constexpr u32 bytes = 8;
  TH_DEVICE Barrier offset(u32 barriers) const { return {address + barriers * bytes}; }

  /// One thread calls it; `arrivals` (1 … 2^20−1) complete a phase. Other threads of the block see it after
  /// fence::barrier_init() by the same thread and then a block (or cluster) barrier.
  TH_DEVICE void init(u32 arrivals, Site site = here()) const;

  /// Release, block scope: this thread's earlier writes are visible to threads that see the phase complete.
  TH_DEVICE void arrive(u32 count = 1, Site site = here()) const;
  /// Adds to the bytes that the current phase still awaits, without arriving.
  TH_DEVICE void expect_bytes(u32 count, Site site = here()) const;
  /// expect_bytes, then one arrival, as one operation.
  TH_DEVICE void arrive_expect_bytes(u32 count, Site site = here()) const;

  /// Blocks until the phase of that parity has completed. Acquire, block scope: ordinary writes released by arrivals
  /// and bytes delivered by TMA are visible afterwards.
  TH_DEVICE void wait(Phase phase, Site site = here()) const;
  /// The same with cluster scope: for bytes that other blocks of the cluster wrote (Remote::store, st_async) and
  /// released.
  TH_DEVICE void wait_cluster(Phase phase, Site site = here()) const;
};

}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/barrier.hpp"
#else
#include "machine/emulator/barrier.hpp"
#endif
