#pragma once
/// A row's way through a cluster: a block sends what it has of it, and the block that it is sent to merges the parts in
/// the order of their blocks. Lane l owns columns [l·V/32, (l+1)·V/32).
#include "strategies/attention/stream_k/device/rows.hpp"

namespace thresher::strategies::attention {

using pipeline::attention::PartPlace;
using pipeline::attention::StreamKMemory;

/// By one warp.
template <int owned>
TH_DEVICE void send_part(const PartPlace& to, const RowSums<owned>& sums) {
  constexpr int wide = owned < 4 ? owned : 4;
  const u32 lane = warp::lane();
  const Remote<Vector<float, wide>> pieces =
      to.sums.offset(lane * static_cast<u32>(owned)).template as<Vector<float, wide>>();
  TH_UNROLL
  for (int i = 0; i < owned; i += wide) {
    cluster::store_async(pieces.offset(static_cast<u32>(i / wide)), piece_of<wide>(sums.output, i), to.full);
  }
  if (lane == 0) {
    cluster::store_async(to.shift_and_sum, Vector<float, 2>{{sums.shift, sums.sum}}, to.full);
  }
}

/// The `place`-th row that this block merges, of which `parts` blocks have sent theirs.
template <StreamKConfig config>
TH_DEVICE RowSums<config.value_dim / 32> of_cluster(const StreamKMemory<config>& memory, u32 parts, u32 place) {
  constexpr int owned = config.value_dim / 32;
  return merged_parts<owned, static_cast<u32>(config.cluster)>(
      parts, [&](u32 part) { return memory.part_sums(part, place).load(); },
      [&](u32 part) { return memory.part(part, place).offset(warp::lane() * static_cast<u32>(owned)); });
}

}  // namespace thresher::strategies::attention
