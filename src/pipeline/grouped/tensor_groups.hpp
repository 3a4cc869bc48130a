#pragma once
/// What shared memory a grouped kernel takes whose sums lie in tensor memory, and how many columns it may split.
#include "pipeline/grouped/groups.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

/// Columns of a tile whose k range is split, at the most: a thread holds all of their sums.
inline constexpr u32 max_split_columns = 32;

/// Behind all that a shape knows lie, of a split k range, the other half's partial sums of half of the columns, and the
/// directory.
TH_DEVICE constexpr int split_offset(const TensorShape& shape) { return (used_bytes(shape) + 15) / 16 * 16; }
TH_DEVICE constexpr int split_bytes(const TensorShape& shape) {
  constexpr int lanes = 128;
  return shape.split_groups == 1 ? 0 : lanes * shape.sum_columns / 2 * 4;
}
TH_DEVICE constexpr int directory_offset(const TensorShape& shape) { return split_offset(shape) + split_bytes(shape); }
TH_DEVICE constexpr int grouped_shared_bytes(const TensorShape& shape, u32 groups) {
  const int needed = directory_offset(shape) + static_cast<int>(directory_bytes(groups));
  return needed > shared_bytes(shape) ? needed : shared_bytes(shape);
}

/// Columns of an accumulator that a finishing warp's code loads, each place in it counted once: chunks of 32 and of the
/// least width, or, of a split k range, whole tiles of all widths.
TH_DEVICE constexpr u32 loaded_columns(const TensorShape& shape, TileWidths tile_widths) {
  constexpr u32 chunk = 32;
  return shape.split_groups == 1 || tile_widths.most == chunk ? chunk + tile_widths.least : tile_widths.most;
}

/// What the hardware has room for; of more groups than there can be, the directory of max_groups.
TH_DEVICE constexpr bool fits(const TensorShape& shape, i64 groups) {
  const u32 most = static_cast<u32>(groups < max_groups ? groups : max_groups);
  return used_columns(shape) <= static_cast<int>(tensor_memory::all_columns) &&
         grouped_shared_bytes(shape, most) <= max_shared_bytes;
}

}  // namespace thresher::pipeline
