#pragma once
/// The tensor memory skeleton's compile-time description of a kernel. The shared memory, the threads and the columns of
/// tensor memory follow from it.
#include "machine/tensor_memory.hpp"
#include "pipeline/shape.hpp"
#include "pipeline/transposed_layout.hpp"

namespace thresher::pipeline {

/// One compile-time value: a template parameter of the skeleton with accumulators in tensor memory.
struct TensorShape {
  Group group = Group::block;  ///< the blocks that share a product
  int stages = 0;              ///< stages of the ring
  int slot_bytes = 0;          ///< per stage of one block, a multiple of 1024
  int staging_bytes = 0;       ///< shared memory of the epilogue warpgroup for its outputs, a multiple of 16
  int sums = 1;                ///< accumulators: with 2 the epilogue of a tile overlaps the next tile's products
  int sum_columns = 0;         ///< of tensor memory, per accumulator
  int sum_parts = 1;           ///< equal parts of them, each with columns for all of the tile's: gate, up
  int scale_columns = 0;       ///< for the scales of one stage
  int split_groups = 1;        ///< groups of a cluster that share one tile by split K
  bool persistent = false;     ///< a block takes several tiles
  bool profiled = false;       ///< the roles write timestamps
  Ablation ablation = Ablation::none;

  bool operator==(const TensorShape&) const = default;
};

TH_DEVICE constexpr int group_blocks(const TensorShape& shape) { return static_cast<int>(shape.group); }
TH_DEVICE constexpr int cluster_blocks(const TensorShape& shape) { return group_blocks(shape) * shape.split_groups; }

/// Four warps run the epilogue, one per quarter of the lanes. One warp is the producer. One warp issues MMAs and owns
/// the tensor memory.
inline constexpr u32 finishing_warps = 4;
inline constexpr u32 loading_warp = 4;
inline constexpr u32 multiplying_warp = 5;
TH_DEVICE constexpr int threads(const TensorShape&) { return 6 * 32; }

/// Columns: the accumulators, then a set of scales per stage.
TH_DEVICE constexpr int set_offset(const TensorShape& shape, u32 slot) {
  return shape.sums * shape.sum_columns + static_cast<int>(slot) * shape.scale_columns;
}
TH_DEVICE constexpr int used_columns(const TensorShape& shape) {
  return set_offset(shape, static_cast<u32>(shape.stages));
}

/// With split K each block finishes half of each part's columns, one part's behind the other's. Maps column `at` of a
/// half to its column in the accumulator.
TH_DEVICE constexpr u32 half_columns(const TensorShape& shape) { return static_cast<u32>(shape.sum_columns) / 2; }
TH_DEVICE constexpr u32 column_of_half(const TensorShape& shape, u32 half, u32 at) {
  const u32 part_columns = half_columns(shape) / static_cast<u32>(shape.sum_parts);
  return at + (at / part_columns + half) * part_columns;
}
/// Columns that are sent to the other block at a time; 0 without split K.
TH_DEVICE constexpr u32 sent_columns(const TensorShape& shape) {
  const u32 part_columns = half_columns(shape) / static_cast<u32>(shape.sum_parts);
  return shape.split_groups == 1 ? 0 : part_columns % 32 == 0 ? 32 : part_columns % 16 == 0 ? 16 : 8;
}

/// Offsets into the block's dynamic shared memory. A block of one tile no longer needs its stages after the main loop:
/// received partial sums of split K reuse them, followed by its staging. A persistent block's producer refills them, so
/// its staging is behind them.
TH_DEVICE constexpr int slots_bytes(const TensorShape& shape) { return shape.stages * shape.slot_bytes; }
TH_DEVICE constexpr int landing_bytes(const TensorShape& shape) {
  return shape.split_groups == 1 ? 0 : static_cast<int>(tensor_memory::lanes * half_columns(shape) * 4);
}
TH_DEVICE constexpr int staging_offset(const TensorShape& shape) {
  return shape.persistent ? slots_bytes(shape) : landing_bytes(shape);
}
TH_DEVICE constexpr int barrier_offset(const TensorShape& shape) {
  const int staging_end = staging_offset(shape) + shape.staging_bytes;
  return staging_end > slots_bytes(shape) ? staging_end : slots_bytes(shape);
}
/// full and empty of each stage and of each accumulator, and the two of the split-K merge.
TH_DEVICE constexpr int barrier_count(const TensorShape& shape) { return 2 * shape.stages + 2 * shape.sums + 2; }
/// Behind the barriers follow the word that receives the allocation's address, and four words for the epilogue warps.
TH_DEVICE constexpr int place_offset(const TensorShape& shape) {
  return barrier_offset(shape) + 8 * barrier_count(shape);
}
TH_DEVICE constexpr int used_bytes(const TensorShape& shape) { return place_offset(shape) + 32; }
inline constexpr int max_shared_bytes = 227 * 1024;
/// All of tensor memory is allocated, so only one block may be resident on a multiprocessor. Therefore it requests more
/// than half of the shared memory, and no allocation waits for another block of the same kernel.
TH_DEVICE constexpr int shared_bytes(const TensorShape& shape) {
  constexpr int one_block = max_shared_bytes / 2 + 1024;
  return used_bytes(shape) > one_block ? used_bytes(shape) : one_block;
}

/// The roles with a timeline in a profile: the epilogue warpgroup, the MMA warp, the producer.
TH_DEVICE constexpr Shape profile_shape(const TensorShape& shape) {
  return {.math_warpgroups = 2, .profiled = shape.profiled, .ablation = shape.ablation};
}

/// Whether it fits the hardware.
TH_DEVICE constexpr bool fits(const TensorShape& shape) {
  return used_columns(shape) <= static_cast<int>(tensor_memory::all_columns) && shared_bytes(shape) <= max_shared_bytes;
}

}  // namespace thresher::pipeline
