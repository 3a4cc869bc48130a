#pragma once
/// Copies a tile's tokens to the pipeline stages of a group of blocks with accumulators in tensor memory. Each block
/// loads its own part of the tile's columns, exactly as many rows as that has.
#include "pipeline/grouped/tokens.hpp"
#include "pipeline/tensor_loads.hpp"

namespace thresher::pipeline {

/// Rows of the larger box; a part is a multiple of few_token_rows.
inline constexpr u32 many_tensor_rows = 32;

/// Loads `count` rows of 128 bytes, from `row` on, to `offset` of this block's stage; `place(row)` gives a box's first
/// coordinates in either map.
template <Group group, class Place>
TH_DEVICE void load_token_part(const LoadSlot& slot, u32 offset, const TokenMaps& maps, u32 row, u32 count,
                               const Place& place) {
  TH_NO_UNROLL
  for (u32 at = 0; at < count;) {
    const bool is_many = count - at >= many_tensor_rows;
    load_box<group>(slot, offset + at * token_row_bytes, is_many ? maps.many : maps.few, place(row + at));
    at += is_many ? many_tensor_rows : few_token_rows;
  }
}

}  // namespace thresher::pipeline
