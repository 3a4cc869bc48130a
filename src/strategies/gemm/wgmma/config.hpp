#pragma once
/// The knobs of the strategies rows and columns, and what follows from them. Both strategies multiply 16-bit numbers or
/// FP8 with wgmma.
///
/// `columns`: weights are the M side of wgmma, tokens the N side, which goes in steps of 8. A tile takes the least of
/// 8, 16, 32, 64, 64 + token_step … block_tokens columns that holds its rows. A consumer warpgroup owns 64 outputs,
/// with separate accumulators for gate and for up. With one matrix it owns twice 64 outputs.
///
/// `rows`: tokens are the M side, in tiles of 64 rows, of which a tile takes as many as its group has left. Weights are
/// the N side, with as many gate rows as up rows. Gate and up of one output are thus two elements of the same thread's
/// accumulators. Warpgroups that share a tile take its rows in whole tiles of the instruction; one without rows passes
/// over the tile.
///
/// Sums of FP8 are accumulated in float32, because the tensor cores keep them with few bits. The products of a stage
/// have accumulators of their own and are added to those in float32. A tile therefore takes twice the registers. While
/// one warpgroup adds, another that shares the tile multiplies. In rows, sums that do not fit a thread's registers
/// twice are added in pieces. The products of a stage with gate and with up are then made one after the other.
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/shape.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/device/slot_layout.hpp"

namespace thresher::strategies::gemm::wgmma {

struct Config {
  bool tokens_are_rows = false;            ///< the strategy rows; else columns
  Numerics numerics = Numerics::exact;     ///< fast: sums of FP8 are left to the tensor cores
  Number operand = Number::bf16;           ///< fp16, bf16 or e4m3
  Scaling token_scaling = Scaling::none;   ///< of e4m3, what a scale of the tokens is of
  Scaling weight_scaling = Scaling::none;  ///< likewise of the weights
  Number output = Number::bf16;
  Scaling output_scaling = Scaling::none;  ///< of e4m3, what a scale of the outputs is of
  int matrices = 2;                        ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int math_warpgroups = 2;
  bool by_turns = false;   ///< each consumer warpgroup takes tiles of its own: one finishes while another multiplies
  int least_tokens = 8;    ///< columns: the least that a tile takes: 8, 16, 32, 64 or 128
  int block_tokens = 128;  ///< and the most; rows: a multiple of 64
  int token_step = 16;     ///< columns: between widths of more than 64; 0: each is twice the one below
  int block_outputs = 64;  ///< rows: columns of C in a tile; of one matrix half of them
  int block_k = 64;        ///< k elements of a slot: 64 bytes, or a multiple of 128; up to 128 if FP8 is added in FP32
  int stages = 4;
  int blocks_resident = 1;  ///< columns: thread blocks meant to share a multiprocessor
  /// columns, of dense rows: a block has one tile of block_tokens, and weights come before earlier launches have ended.
  bool static_tiles = false;
  int split_k = 1;           ///< columns: blocks of a cluster that divide the k range of its one tile
  int loader_registers = 0;  ///< with math_registers: the register reallocation; 0 for none
  int math_registers = 0;
  bool profiled = false;         ///< leaves timestamps of its roles in PlainParams::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// The rows of one accumulator tile: of weights in columns, of tokens in rows.
inline constexpr int sum_rows = 64;

/// Consumer warpgroups that share a tile.
TH_DEVICE constexpr int tile_warpgroups(const Config& c) { return c.by_turns ? 1 : c.math_warpgroups; }
/// Rows of weights that one copy brings: of gate or of up, or half of one matrix's.
TH_DEVICE constexpr int weight_box_rows(const Config& c) {
  return c.tokens_are_rows ? c.block_outputs : tile_warpgroups(c) * sum_rows;
}
TH_DEVICE constexpr int tile_outputs(const Config& c) { return weight_box_rows(c) * (c.matrices == 2 ? 1 : 2); }
TH_DEVICE constexpr SlotLayout slot_layout(const Config& c) {
  return {c.block_k, c.block_tokens, weight_box_rows(c), c.matrices, element_bytes(c.operand)};
}

TH_DEVICE constexpr bool is_persistent(const Config& c) { return !c.static_tiles && c.split_k == 1; }

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  const int least = c.tokens_are_rows  ? sum_rows * tile_warpgroups(c)
                    : is_persistent(c) ? c.least_tokens
                                       : c.block_tokens;
  const int step = !c.tokens_are_rows ? c.token_step : c.by_turns ? sum_rows : 0;
  return {static_cast<machine::u32>(least), static_cast<machine::u32>(c.block_tokens), static_cast<machine::u32>(step)};
}

TH_DEVICE constexpr bool promotes(const Config& c) { return gemm::promotes(c.operand, c.numerics); }
/// Floats of a thread's sums of a tile, and the most that fit twice.
TH_DEVICE constexpr int sums(const Config& c) {
  return c.tokens_are_rows ? c.block_tokens / sum_rows / tile_warpgroups(c) * c.block_outputs : c.block_tokens;
}
inline constexpr int max_sums_twice = 96;
/// rows: with FP32 accumulation, the columns of the sums are added in halves if they do not fit twice.
TH_DEVICE constexpr int column_pieces(const Config& c) {
  return c.tokens_are_rows && promotes(c) && sums(c) > max_sums_twice ? 2 : 1;
}
/// Floats of a thread's sums and of what a slot adds to them.
TH_DEVICE constexpr int sum_registers(const Config& c) {
  if (!promotes(c)) {
    return sums(c);
  }
  return sums(c) + (column_pieces(c) == 1 ? sums(c) : c.block_outputs / 2);
}
TH_DEVICE constexpr ScalingKnobs scaling_knobs(const Config& c) {
  return {c.token_scaling, c.weight_scaling, c.gathered};
}

TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .output_scaling = c.output_scaling,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = slot_layout(c).token_bytes() + slot_layout(c).weight_bytes(),
      .staging_bytes = c.tokens_are_rows ? 0 : finish_staging_bytes(c.output, 2),
      .math_warpgroups = c.math_warpgroups,
      .split_blocks = c.split_k,
      .reading = c.by_turns ? pipeline::Reading::ping_pong : pipeline::Reading::cooperative,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = is_persistent(c),
      .release_early = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::gemm::wgmma
