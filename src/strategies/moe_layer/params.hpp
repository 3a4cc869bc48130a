#pragma once
/// The one parameter of each of a layer's own kernels, and how much a block of them does.
#include "machine/global.hpp"

namespace thresher::strategies::moe_layer {

inline constexpr machine::u32 route_threads = 512;
inline constexpr machine::u32 route_warps = route_threads / 32;
/// Of one block; so many are sorted by one launch.
inline constexpr machine::u32 block_choices = 4096;

struct RouteParams {
  machine::Global<machine::i32> ids;  ///< [choices]
  machine::Global<machine::i32>
      counts;  ///< [blocks, experts] of count_choices_kernel; a block that is alone reads none
  machine::Global<machine::i32> offsets;  ///< [experts + 1]
  machine::Global<machine::i32> row_ids;  ///< [choices]
  machine::Global<machine::i32> inverse;  ///< [choices]
  machine::u32 choices = 0;
  machine::u32 experts = 0;
  machine::u32 key_bits = 0;  ///< the numbers 0 … experts have as many
};

/// Words of shared memory: a count for each warp and each expert, those without one last, then a sum for each expert.
TH_DEVICE constexpr machine::u32 route_words(machine::u32 experts) { return (route_warps + 1) * (experts + 1); }

inline constexpr machine::u32 combine_threads = 128;
/// Neighbouring columns of one thread.
inline constexpr machine::u32 thread_columns = 8;

struct CombineParams {
  machine::Global<machine::u8> rows;      ///< [choices, columns] of the row's number, contiguous, on 16 bytes
  machine::Global<machine::i32> inverse;  ///< [tokens, top_k]: a choice's row; negative for one that is skipped
  machine::Global<float> weights;         ///< [tokens, top_k]
  machine::Global<machine::u8> out;       ///< [tokens, columns] of the output's number
  machine::u64 out_stride = 0;            ///< elements
  machine::u32 columns = 0;               ///< a multiple of 8
  machine::u32 top_k = 0;
  machine::u32 wide = 0;  ///< 1 when every row of out begins on 16 bytes
};

}  // namespace thresher::strategies::moe_layer
