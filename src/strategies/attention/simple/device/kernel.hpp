#pragma once
/// `simple`: one warp for a query row. It is the baseline of the other strategies.
#include "strategies/attention/device/row.hpp"

namespace thresher::strategies::attention {

/// Grid: x query tiles of `simple_warps` rows · heads · batch, as work_at numbers them.
template <typename Element, int head_dim, int value_dim, typename KeyElement = Element, typename QueryElement = Element>
TH_KERNEL(simple_warps * 32, 1)
simple(TH_GRID_CONSTANT const Params params) {
  launch::wait_for_earlier_grids();
  const Work work = work_at(params, static_cast<i32>(launch::block_index().x), simple_warps);
  const i32 query = work.first_row + static_cast<i32>(warp::index());
  if (query >= 0 && query < work.sequence.queries) {
    attend_row<Element, QueryElement, KeyElement, head_dim, value_dim>(params, work.sequence, query, 0, value_dim);
  }
}

}  // namespace thresher::strategies::attention
