#pragma once
/// Operations of the threads of one warp. All 32 threads (or all in `mask`) make every call.
#include "machine/types.hpp"

namespace thresher::machine::warp {

inline constexpr u32 all_lanes = 0xFFFFFFFFU;

/// This thread's index in its warp.
TH_DEVICE u32 lane();
/// The warp's index in its block, in a form that the compiler knows to be uniform in the warp.
TH_DEVICE u32 index(Site site = here());
/// index() / 4, uniform as well.
TH_DEVICE u32 group_index(Site site = here());

/// True for one thread of the warp, the same one each time.
TH_DEVICE bool elect(Site site = here());

/// The value of the thread `source`; T is a 4-byte type (u32, i32, float).
template <typename T>
TH_DEVICE T shuffle(T value, u32 source, Site site = here());
template <typename T>
TH_DEVICE T shuffle_xor(T value, u32 lane_mask, Site site = here());
template <typename T>
TH_DEVICE T shuffle_up(T value, u32 distance, Site site = here());

/// The values of all 32 threads combined, for every thread: in steps of shuffle_xor by 16, 8, 4, 2 and 1,
/// combine(own, other) each. T is a 4-byte type.
template <typename T, typename Combine>
TH_DEVICE T reduce(T value, const Combine& combine, Site site = here());

TH_DEVICE u32 ballot(bool predicate, Site site = here());
TH_DEVICE bool any(bool predicate, Site site = here());
TH_DEVICE bool all(bool predicate, Site site = here());

/// Waits for the threads of `mask` and orders their memory accesses.
TH_DEVICE void sync(u32 mask = all_lanes, Site site = here());

}  // namespace thresher::machine::warp

#if TH_GPU
#include "machine/ptx/warp.hpp"
#else
#include "machine/emulator/warp.hpp"
#endif
