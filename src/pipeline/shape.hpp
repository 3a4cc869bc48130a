#pragma once
/// The skeleton's compile-time description of a kernel, with the shared memory and threads that follow from it.
#include "machine/types.hpp"

namespace thresher::pipeline {

using namespace machine;

/// The consumer warpgroups that read a stage of the ring.
enum class Reading : u8 {
  cooperative,  ///< all of them, each for its own rows of the tile
  ping_pong,    ///< one; warpgroup i takes tiles i, i + n, … of the block
};

/// When the next block's fragments are made, for an A operand in registers.
enum class Overlap : u8 {
  step,   ///< after each multiply, while up to three are in flight: most even, for large tiles
  block,  ///< while a whole block is in flight
  none,   ///< after the block has retired; other warpgroups fill the gap, with half the fragment registers
};

/// The work that a kernel leaves out or does twice, to measure its cost. The results are not the operation's.
enum class Ablation : u8 {
  none,
  no_epilogue,     ///< accumulators are computed and not written
  epilogue_twice,  ///< written, and written again
  loads_only,      ///< stages are filled and released, without products
  products_only,   ///< each stage is filled once, then multiplied again and again
  first_operand,   ///< an A operand in registers is made once
};

/// Blocks of a cluster that may share one tile by split K.
inline constexpr int max_split_blocks = 8;

/// One compile-time value: a template parameter of everything in this layer.
struct Shape {
  int stages = 0;         ///< stages of the ring
  int slot_bytes = 0;     ///< per stage, a multiple of 1024
  int staging_bytes = 0;  ///< shared memory of each consumer warpgroup for its outputs, a multiple of 1024
  int math_warpgroups = 0;
  int multicast_blocks = 1;  ///< blocks of a cluster that fill each other's stages
  int split_blocks = 1;      ///< blocks of a cluster that share one tile by split K: up to max_split_blocks
  int passes = 1;            ///< loops over a tile's k range
  Reading reading = Reading::cooperative;
  int loader_registers = 0;  ///< 0: no register reallocation, and the producer is one warp instead of a warpgroup
  int math_registers = 0;
  bool persistent = false;     ///< a block takes several tiles
  bool release_early = false;  ///< the next grid may start when this one has, not when its products are done
  bool profiled = false;       ///< the roles write timestamps
  Ablation ablation = Ablation::none;

  bool operator==(const Shape&) const = default;
};

TH_DEVICE constexpr int cluster_blocks(const Shape& shape) { return shape.multicast_blocks * shape.split_blocks; }

TH_DEVICE constexpr int math_threads(const Shape& shape) { return shape.math_warpgroups * 128; }

/// Columns of a tile whose sums a block keeps after its cluster has added up a split K: whole groups of 8, as few as
/// divide them evenly among the blocks that keep any.
TH_DEVICE constexpr u32 kept_columns(const Shape& shape, u32 columns) {
  const u32 groups = columns / 8;
  const u32 parts = static_cast<u32>(shape.split_blocks);
  u32 kept = (groups + parts - 1) / parts;
  while (groups % kept != 0) {
    ++kept;
  }
  return 8 * kept;
}

/// Consumer warpgroups first, because a warpgroup starts at a multiple of 4 warps; the producer after them.
TH_DEVICE constexpr int threads(const Shape& shape) {
  return math_threads(shape) + (shape.loader_registers > 0 ? 128 : 32);
}

/// Offsets into the block's dynamic shared memory. A block of one tile no longer needs its stages after the main loop:
/// the partial sums of split K and the staging reuse them. A persistent block's producer refills them, so its staging
/// is behind them.
TH_DEVICE constexpr int slots_bytes(const Shape& shape) { return shape.stages * shape.slot_bytes; }
TH_DEVICE constexpr int staging_offset(const Shape& shape) { return shape.persistent ? slots_bytes(shape) : 0; }
TH_DEVICE constexpr int barrier_offset(const Shape& shape) {
  const int staging_end = staging_offset(shape) + shape.math_warpgroups * shape.staging_bytes;
  return staging_end > slots_bytes(shape) ? staging_end : slots_bytes(shape);
}
/// full and empty of each stage, the two of the split-K merge, and one per consumer warpgroup for their order.
TH_DEVICE constexpr int barrier_count(const Shape& shape) { return 2 * shape.stages + 2 + shape.math_warpgroups; }
TH_DEVICE constexpr int shared_bytes(const Shape& shape) { return barrier_offset(shape) + 8 * barrier_count(shape); }

}  // namespace thresher::pipeline
