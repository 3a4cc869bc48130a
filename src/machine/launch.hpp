#pragma once
/// A thread's indices in the launch, its block's shared memory, and programmatic dependent launch.
#include "machine/shared.hpp"

namespace thresher::machine::launch {

struct Index {
  u32 x, y, z;
};

/// Blocks are one-dimensional in threads.
TH_DEVICE u32 thread_index();
TH_DEVICE u32 thread_count();
TH_DEVICE Index block_index();
TH_DEVICE Index block_count();

/// The block's dynamic shared memory; its first byte is 1024-byte aligned (a 128-byte swizzle atom) in every block.
TH_DEVICE Shared<u8> shared_memory();
/// Its size in bytes.
TH_DEVICE u32 shared_memory_bytes();

/// Programmatic dependent launch (PDL). Blocks until all earlier grids in the stream that this one depends on have
/// completed and their writes are visible; returns at once in an ordinary launch. Data that they wrote must not be
/// accessed before.
TH_DEVICE void wait_for_earlier_grids(Site site = here());
/// Lets the next grid start when every block has called it or ended. It does not make this grid's writes visible. If
/// every block has waited for earlier grids before, their writes are visible to the next grid from its start.
TH_DEVICE void release_dependents(Site site = here());

}  // namespace thresher::machine::launch

#if TH_GPU
#include "machine/ptx/launch.hpp"
#else
#include "machine/emulator/launch.hpp"
#endif
