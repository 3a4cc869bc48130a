#pragma once
/// The shared memory of a grouped kernel with accumulators in tensor memory, and its maximum number of split columns.
#include "pipeline/grouped/groups.hpp"
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/tensor_shape.hpp"

namespace thresher::pipeline {

/// The maximum number of columns of a tile with split K: a thread holds the accumulators of all of them.
inline constexpr u32 max_split_columns = 32;

/// Behind the parts of a shape follow, for split K, the partial sums of half of the columns from the other half, and
/// the directory.
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

/// Columns of an accumulator that an epilogue warp's code loads; each load in the code counts once. They are chunks of
/// 32 and of the smallest width, or, with split K, whole tiles of all widths.
TH_DEVICE constexpr u32 loaded_columns(const TensorShape& shape, TileWidths tile_widths) {
  constexpr u32 chunk = 32;
  return shape.split_groups == 1 || tile_widths.most == chunk ? chunk + tile_widths.least : tile_widths.most;
}

/// Whether it fits the hardware. For more groups than the maximum, the directory of max_groups is assumed.
TH_DEVICE constexpr bool fits(const TensorShape& shape, i64 groups) {
  const u32 most = static_cast<u32>(groups < max_groups ? groups : max_groups);
  return used_columns(shape) <= static_cast<int>(tensor_memory::all_columns) &&
         grouped_shared_bytes(shape, most) <= max_shared_bytes;
}

}  // namespace thresher::pipeline
