#pragma once
/// The tensor memory accelerator: asynchronous copies between global and shared memory. Every call is made by ONE
/// thread.
#include "machine/barrier.hpp"
#include "machine/tensor_map.hpp"

namespace thresher::machine {

/// Coordinates of a box's first element, contiguous dimension first; negative and too large ones are out of bounds. The
/// first is a multiple of 16 bytes: anything else is an illegal instruction.
template <int rank>
struct At {
  i32 coordinate[rank];
};
template <typename... T>
At(T...) -> At<static_cast<int>(sizeof...(T))>;

namespace tma {

/// Prefetches the map itself. Optional.
TH_DEVICE void prefetch(const TensorMap& map, Site site = here());

/// Copies one box to `destination` (aligned to the swizzle's 128·2^n bytes, at least 128). It completes its full byte
/// count, zero-filled elements included, on `full`.
template <int rank>
TH_DEVICE void load(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at,
                    CacheHint hint = CacheHint::none, Site site = here());

/// The same into the same offset of every block of the cluster whose bit in `block_mask` is set. The bytes of each
/// block complete on its own barrier at the offset of `full`.
template <int rank>
TH_DEVICE void load_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, u16 block_mask,
                              CacheHint hint = CacheHint::none, Site site = here());

/// Copies one box to this block and completes its bytes on the barrier at `full`'s offset in the even block of the
/// pair. There one thread waits for the loads of both blocks. Blackwell.
template <int rank>
TH_DEVICE void load_pair(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at, Site site = here());

/// The same into the same offset of every block of the cluster whose bit in `block_mask` is set. The bytes of each pair
/// complete on the barrier of its even block.
template <int rank>
TH_DEVICE void load_pair_multicast(Shared<u8> destination, const TensorMap& map, Barrier full, At<rank> at,
                                   u16 block_mask, Site site = here());

/// Copies a box from `source` (ordinary stores to it need fence::async_shared() and a barrier before). The box may
/// extend beyond the tensor's end but, unlike a load's, must not begin before it: an illegal instruction. Part of the
/// thread's current group of stores.
template <int rank>
TH_DEVICE void store(const TensorMap& map, Shared<u8> source, At<rank> at, Site site = here());

/// Untyped copies of contiguous bytes; addresses and `bytes` are multiples of 16.
TH_DEVICE void load_bulk(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full,
                         CacheHint hint = CacheHint::none, Site site = here());
TH_DEVICE void load_bulk_multicast(Shared<u8> destination, Global<u8> source, u32 bytes, Barrier full, u16 block_mask,
                                   Site site = here());

/// Prefetches contiguous bytes into L2; address and `bytes` are multiples of 16. It is not an access: data that an
/// earlier grid still writes may be prefetched. All bytes are in one buffer of the launch.
TH_DEVICE void prefetch_bulk(Global<u8> source, u32 bytes, Site site = here());

/// Closes the thread's current group of stores.
TH_DEVICE void commit(Site site = here());
/// Blocks until at most `pending` of the thread's groups have not finished READING shared memory: it may be
/// overwritten.
template <int pending>
TH_DEVICE void wait_read(Site site = here());
/// Blocks until at most `pending` groups are incomplete: their writes are done.
template <int pending>
TH_DEVICE void wait(Site site = here());

}  // namespace tma
}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/tma.hpp"
#else
#include "machine/emulator/tma.hpp"
#endif
