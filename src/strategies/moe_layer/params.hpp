#pragma once
/// The parameter of each kernel around a layer's products, and the work of their blocks.
#include "machine/global.hpp"
#include "strategies/gemm/device/gather_params.hpp"

namespace thresher::strategies::moe_layer {

inline constexpr machine::u32 route_threads = 512;
inline constexpr machine::u32 route_warps = route_threads / 32;
/// Assignments that a block permutes; no more than these need no counting launch.
inline constexpr machine::u32 block_choices = 8192;
/// The maximum number of them whose rows a block gathers.
inline constexpr machine::u32 max_part_choices = 256;

struct RouteParams {
  machine::Global<machine::i32> ids;      ///< [choices]
  machine::Global<machine::i32> counts;   ///< [blocks, experts] by count_choices_kernel; not read with one block
  machine::Global<machine::i32> offsets;  ///< [experts + 1]
  machine::Global<machine::i32> row_ids;  ///< [choices]
  machine::Global<machine::i32> inverse;  ///< [choices]
  machine::u32 choices = 0;
  machine::u32 experts = 0;
  machine::u32 key_bits = 0;      ///< of the numbers 0 … experts
  machine::u32 part_choices = 0;  ///< that a block places, its own: a divisor of block_choices
  gemm::GatherParams gather;      ///< of their rows; its row_bytes are 0 where none are gathered
  /// Null unless the tokens are quantized. `gather` then reads 16 bits and writes FP8.
  machine::Global<float> scales;
  machine::u64 scales_row_stride = 0;
  machine::u64 scales_block_stride = 0;
};

/// Words of shared memory: a count for each warp and expert, with skipped assignments last. Then a count and a sum for
/// each expert, the rows of a block's own assignments, and a word for each assignment that a block permutes.
TH_DEVICE constexpr machine::u32 route_words(machine::u32 experts, machine::u32 choices) {
  const machine::u32 permuted = choices < block_choices ? choices : block_choices;
  return (route_warps + 2) * (experts + 1) + max_part_choices +
         (permuted + route_threads - 1) / route_threads * route_threads;
}

inline constexpr machine::u32 combine_threads = 128;
/// Neighbouring columns of one thread.
inline constexpr machine::u32 thread_columns = 8;

struct CombineParams {
  machine::Global<machine::u8> rows;      ///< [choices, columns] of the row's number, contiguous, on 16 bytes
  machine::Global<machine::i32> inverse;  ///< [tokens, top_k]: an assignment's row; negative for a skipped one
  machine::Global<float> weights;         ///< [tokens, top_k]
  machine::Global<machine::u8> out;       ///< [tokens, columns] of the output's number
  machine::u64 out_stride = 0;            ///< elements
  machine::u32 columns = 0;               ///< a multiple of 8
  machine::u32 top_k = 0;
  machine::u32 wide = 0;     ///< 1 when every row of out begins on 16 bytes
  machine::u32 settled = 0;  ///< 1 when inverse and weights are read before the kernel waits for earlier grids
};

}  // namespace thresher::strategies::moe_layer
