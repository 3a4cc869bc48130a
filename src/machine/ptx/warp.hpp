#pragma once
/// Warps on the GPU.
#include "machine/warp.hpp"

namespace thresher::machine::warp {

TH_DEVICE u32 lane() {
  u32 value;
  asm("mov.u32 %0, %%laneid;" : "=r"(value));
  return value;
}

TH_DEVICE u32 index(Site) { return __shfl_sync(all_lanes, threadIdx.x / 32, 0); }
TH_DEVICE u32 group_index(Site) { return __shfl_sync(all_lanes, threadIdx.x / 128, 0); }

TH_DEVICE bool elect(Site) {
  u32 chosen;
  asm volatile(
      "{\n"
      ".reg .pred chosen;\n"
      "elect.sync _|chosen, 0xFFFFFFFF;\n"
      "selp.u32 %0, 1, 0, chosen;\n"
      "}\n"
      : "=r"(chosen));
  return chosen != 0;
}

template <typename T>
TH_DEVICE T shuffle(T value, u32 source, Site) {
  return __shfl_sync(all_lanes, value, static_cast<int>(source));
}
template <typename T>
TH_DEVICE T shuffle_xor(T value, u32 lane_mask, Site) {
  return __shfl_xor_sync(all_lanes, value, static_cast<int>(lane_mask));
}
template <typename T>
TH_DEVICE T shuffle_up(T value, u32 distance, Site) {
  return __shfl_up_sync(all_lanes, value, distance);
}

template <typename T, typename Combine>
TH_DEVICE T reduce(T value, const Combine& combine, Site site) {
  TH_UNROLL
  for (u32 distance = 16; distance > 0; distance /= 2) {
    value = combine(value, shuffle_xor(value, distance, site));
  }
  return value;
}

TH_DEVICE u32 ballot(bool predicate, Site) { return __ballot_sync(all_lanes, predicate); }
TH_DEVICE bool any(bool predicate, Site) { return __any_sync(all_lanes, predicate) != 0; }
TH_DEVICE bool all(bool predicate, Site) { return __all_sync(all_lanes, predicate) != 0; }

TH_DEVICE void sync(u32 mask, Site) { __syncwarp(mask); }

}  // namespace thresher::machine::warp
