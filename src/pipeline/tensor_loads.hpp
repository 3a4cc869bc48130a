#pragma once
/// Copies of boxes to a stage that the blocks of a group fill together: they complete on the barrier where the group's
/// one MMA thread waits.
#include "machine/cluster.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/tma.hpp"
#include "pipeline/ring.hpp"

namespace thresher::pipeline {

/// To `offset` of this block's stage.
template <Group group, int rank>
TH_DEVICE void load_box(const LoadSlot& slot, u32 offset, const TensorMap& map, At<rank> at) {
  if constexpr (group == Group::pair) {
    tma::load_pair(slot.base.offset_bytes(offset), map, slot.full, at);
  } else {
    tma::load(slot.base.offset_bytes(offset), map, slot.full, at);
  }
}

/// The same to the stages of all blocks of the group.
template <Group group, int rank>
TH_DEVICE void load_box_for_all(const LoadSlot& slot, u32 offset, const TensorMap& map, At<rank> at) {
  if constexpr (group == Group::pair) {
    const u16 both = static_cast<u16>(3U << (cluster::rank() & ~1U));
    tma::load_pair_multicast(slot.base.offset_bytes(offset), map, slot.full, at, both);
  } else {
    tma::load(slot.base.offset_bytes(offset), map, slot.full, at);
  }
}

}  // namespace thresher::pipeline
