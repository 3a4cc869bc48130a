#pragma once
/// cp.async: each thread copies a few bytes from global to shared memory without registers.
#include "machine/barrier.hpp"

namespace thresher::machine::async_copy {

/// Copies 16 bytes, both sides 16-byte aligned. When `valid` is false the source is not read and zeros are written.
TH_DEVICE void copy16(Shared<u8> destination, Global<u8> source, bool valid = true, Site site = here());
/// Copies 4 bytes, likewise.
TH_DEVICE void copy4(Shared<u8> destination, Global<u8> source, bool valid = true, Site site = here());

/// Closes the thread's current group of copies.
TH_DEVICE void commit(Site site = here());
/// Blocks until at most `pending` of the thread's groups are incomplete; their bytes are visible to this thread only.
template <int pending>
TH_DEVICE void wait(Site site = here());
/// Arrives once on `barrier` when all copies this thread has made so far are complete; counts as one of its arrivals.
TH_DEVICE void arrive_when_done(Barrier barrier, Site site = here());

}  // namespace thresher::machine::async_copy

#if TH_GPU
#include "machine/ptx/async_copy.hpp"
#else
#include "machine/emulator/async_copy.hpp"
#endif
