#pragma once
/// The knobs of the grouped GEMMs of plain operands for many rows a group, and what follows from them.
///
/// Tokens are the M side of wgmma, in tiles of 64 rows, of which a tile takes as many as its group has left. Weights
/// are the N side: as many gate rows as up rows, so that gate and up of one output are two elements of the same
/// thread's sums. Math warpgroups take tiles by turns: one multiplies while another finishes; or share each, whose rows
/// are then dealt to them in whole tiles of the instruction, and who has none passes over it. Sums of FP8 are promoted
/// as in columns/config.hpp: while one warpgroup adds to them another, which shares the tile, multiplies. Sums that do
/// not fit a thread's registers twice are added in pieces: the products of a slot with gate and with up are then made
/// one after the other.
#include "pipeline/grouped/rung.hpp"
#include "pipeline/shape.hpp"
#include "strategies/grouped_gemm/device/plain_params.hpp"
#include "strategies/grouped_gemm/device/slot_layout.hpp"

namespace thresher::strategies::grouped_gemm::rows {

using dual_gemm::ActivationCode;
using dual_gemm::Number;
using dual_gemm::Numerics;

struct Config {
  Numerics numerics = Numerics::exact;     ///< fast: sums of FP8 are left to the matrix unit
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
  bool by_turns = true;    ///< each math warpgroup takes tiles of its own; else all share each
  int block_tokens = 128;  ///< the most rows of a tile, a multiple of 64
  int block_outputs = 64;  ///< columns of C in a tile; of one matrix half of them
  int block_k = 64;  ///< k elements of a slot: 64 bytes, or a multiple of 128; of sums that are promoted up to 128
  int stages = 6;
  int loader_registers = 0;  ///< with math_registers: the register hand-over; 0 for none
  int math_registers = 0;
  bool profiled = false;         ///< leaves timestamps of its roles in PlainParams::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

inline constexpr int sum_rows = 64;

/// That share a tile.
TH_DEVICE constexpr int tile_warpgroups(const Config& c) { return c.by_turns ? 1 : c.math_warpgroups; }
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.block_outputs * (c.matrices == 2 ? 1 : 2); }
/// Rows that one copy brings, of gate or of up.
TH_DEVICE constexpr int weight_box_rows(const Config& c) { return c.block_outputs; }
TH_DEVICE constexpr SlotLayout slot_layout(const Config& c) {
  return {c.block_k, c.block_tokens, weight_box_rows(c), c.matrices, element_bytes(c.operand)};
}

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  const int least = sum_rows * tile_warpgroups(c);
  return {static_cast<machine::u32>(least), static_cast<machine::u32>(c.block_tokens),
          static_cast<machine::u32>(c.by_turns ? sum_rows : 0)};
}

TH_DEVICE constexpr bool promotes(const Config& c) { return grouped_gemm::promotes(c.operand, c.numerics); }
/// Floats of a thread's sums of a tile, and the most that fit twice.
TH_DEVICE constexpr int sums(const Config& c) {
  return c.block_tokens / sum_rows / tile_warpgroups(c) * c.block_outputs;
}
inline constexpr int max_sums_twice = 96;
/// Of the columns of sums that are promoted, halves if they do not fit twice.
TH_DEVICE constexpr int column_pieces(const Config& c) { return promotes(c) && sums(c) > max_sums_twice ? 2 : 1; }
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
      .math_warpgroups = c.math_warpgroups,
      .reading = c.by_turns ? pipeline::Reading::by_turns : pipeline::Reading::together,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = true,
      .release_early = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::rows
