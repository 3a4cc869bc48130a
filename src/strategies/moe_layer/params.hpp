#pragma once
/// The one parameter of each of a layer's own kernels, and how much a block of them does.
#include "machine/global.hpp"
#include "strategies/gemm/device/gather_row.hpp"

namespace thresher::strategies::moe_layer {

inline constexpr machine::u32 route_threads = 512;
inline constexpr machine::u32 route_warps = route_threads / 32;
/// What a block sorts; so many choices need no launch that counts them.
inline constexpr machine::u32 block_choices = 4096;
/// Of those, how many a block has the rows of to bring together, at most.
inline constexpr machine::u32 max_part_choices = 128;

struct RouteParams {
  machine::Global<machine::i32> ids;  ///< [choices]
  machine::Global<machine::i32>
      counts;  ///< [block_choices each, experts] of count_choices_kernel; where there are no more, none is read
  machine::Global<machine::i32> offsets;  ///< [experts + 1]
  machine::Global<machine::i32> row_ids;  ///< [choices]
  machine::Global<machine::i32> inverse;  ///< [choices]
  machine::u32 choices = 0;
  machine::u32 experts = 0;
  machine::u32 key_bits = 0;      ///< the numbers 0 … experts have as many
  machine::u32 part_choices = 0;  ///< a block places so many of those that it sorts: a divisor of block_choices
  gemm::GatherParams gather;      ///< of their rows; its row_bytes are 0 where nobody brings them together
};

/// Words of shared memory: a count for each warp and each expert, those without one last, then a sum for each expert
/// and the rows of a block's own choices.
TH_DEVICE constexpr machine::u32 route_words(machine::u32 experts) {
  return (route_warps + 1) * (experts + 1) + max_part_choices;
}

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
