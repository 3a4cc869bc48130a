#pragma once
/// Typed handles into the block's dynamic shared memory, and into that of another block of the cluster.
#include "machine/types.hpp"

namespace thresher::machine {

/// A typed address in this block's shared memory. On the GPU it is a 32-bit shared-window address; in the emulator, the
/// block's rank in its cluster (bits 31:24) and a byte offset. Kernels must not decode it; the low bits are the
/// alignment in both.
template <typename T>
struct Shared {
  u32 address = 0;

  TH_DEVICE Shared offset(u32 elements) const { return {address + elements * static_cast<u32>(sizeof(T))}; }
  TH_DEVICE Shared offset_bytes(u32 bytes) const { return {address + bytes}; }
  template <typename U>
  TH_DEVICE Shared<U> as() const {
    return {address};
  }

  /// Plain accesses. T is a scalar or a Vector of 2, 4, 8 or 16 bytes, aligned to its size. A read of bytes that
  /// another thread wrote needs a barrier between them. A read by TMA or wgmma needs fence::async_shared() before that
  /// barrier.
  TH_DEVICE T load(u32 index = 0, Site site = here()) const;
  TH_DEVICE void store(u32 index, const T& value, Site site = here()) const;
  /// Relaxed, block scope, returns the previous value. T is u32 or float.
  TH_DEVICE T atomic_add(u32 index, T value, Site site = here()) const;
};

/// A typed address in the shared memory of any block of the cluster, made by cluster::map. The target block must have
/// started (cluster::sync before the first access) and must not have ended.
template <typename T>
struct Remote {
  u32 address = 0;

  TH_DEVICE Remote offset(u32 elements) const { return {address + elements * static_cast<u32>(sizeof(T))}; }
  template <typename U>
  TH_DEVICE Remote<U> as() const {
    return {address};
  }
  TH_DEVICE T load(u32 index = 0, Site site = here()) const;
  TH_DEVICE void store(u32 index, const T& value, Site site = here()) const;
};

}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/shared.hpp"
#else
#include "machine/emulator/shared.hpp"
#endif
