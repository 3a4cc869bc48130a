#pragma once
/// Typed views of global memory: the only access of a kernel without TMA.
#include "machine/types.hpp"

namespace thresher::machine {

/// How long L2 should keep a line, for loads that are read once or often.
enum class CacheHint : u8 { none, evict_first, evict_last };

/// A typed address in global memory. It is one 64-bit word in both bodies, so a parameter struct has one layout.
/// Out-of-bounds and misaligned accesses are findings in the emulator, which knows the launch's buffers.
template <typename T>
struct Global {
  u64 address = 0;

  /// The address `elements` elements later. Forming an address is never an access.
  TH_DEVICE Global offset(i64 elements) const;
  /// The same address as another type.
  template <typename U>
  TH_DEVICE Global<U> as() const {
    return {address};
  }
  TH_DEVICE bool is_null() const { return address == 0; }

  /// Plain weak accesses. T is a scalar or a Vector of 2, 4, 8 or 16 bytes, aligned to its size.
  TH_DEVICE T load(i64 index = 0, Site site = here()) const;
  TH_DEVICE void store(i64 index, const T& value, Site site = here()) const;
  /// Through the read-only path: no write to these bytes may happen during the launch. T has 4, 8 or 16 bytes.
  TH_DEVICE T load_read_only(i64 index = 0, CacheHint hint = CacheHint::none, Site site = here()) const;
  /// For data that is written once and not read again soon: does not displace L2's content.
  TH_DEVICE void store_streaming(i64 index, const T& value, Site site = here()) const;

  /// Prefetches the 128 bytes around the element into L2. It is not an access: data that an earlier grid still writes
  /// may be prefetched, and nothing happens beyond the end of a buffer's last line.
  TH_DEVICE void prefetch(i64 index = 0) const;

  /// GPU-scope acquire load and release store; T is u32 or u64.
  TH_DEVICE T load_acquire(i64 index = 0, Site site = here()) const;
  TH_DEVICE void store_release(i64 index, T value, Site site = here()) const;
  /// Relaxed, GPU scope, returns the previous value. T is u32, u64 or float.
  TH_DEVICE T atomic_add(i64 index, T value, Site site = here()) const;
  /// Acquire-release, GPU scope, returns the previous value. T is u32 or u64.
  TH_DEVICE T atomic_add_acq_rel(i64 index, T value, Site site = here()) const;
  TH_DEVICE T atomic_exchange(i64 index, T value, Site site = here()) const;
  TH_DEVICE T atomic_compare_exchange(i64 index, T expected, T desired, Site site = here()) const;
  /// Adds without returning (`red`); T is u32, u64, float.
  TH_DEVICE void reduce_add(i64 index, T value, Site site = here()) const;
};

}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/global.hpp"
#else
#include "machine/emulator/global.hpp"
#endif
