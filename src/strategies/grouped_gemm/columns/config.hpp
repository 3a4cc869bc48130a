#pragma once
/// The knobs of the grouped GEMMs of plain operands, 16-bit numbers or FP8, and what follows from them.
///
/// Weights are the M side of wgmma, tokens the N side, which goes in steps of 8: a tile takes the least of 8, 16, 32,
/// 64, 64 + token_step … block_tokens columns that holds its rows. A math warpgroup owns 64 outputs, gate and up of
/// each in sums of their own; of one matrix twice 64 outputs. Sums of FP8 are promoted: what a slot adds has sums of
/// its own in the matrix unit, where they are short, and is added to those in float32, so that a tile takes twice the
/// registers.
#include "pipeline/grouped/rung.hpp"
#include "pipeline/shape.hpp"
#include "strategies/grouped_gemm/device/plain_params.hpp"
#include "strategies/grouped_gemm/device/slot_layout.hpp"

namespace thresher::strategies::grouped_gemm::columns {

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
  bool by_turns = false;   ///< each math warpgroup takes tiles of its own: one finishes while another multiplies
  int least_tokens = 8;    ///< columns that a tile takes at the least: 8, 16, 32, 64 or 128
  int block_tokens = 128;  ///< and at the most
  int token_step = 16;     ///< between widths of more than 64 columns; 0: each is twice the one below
  int block_k = 64;  ///< k elements of a slot: 64 bytes, or a multiple of 128; of sums that are promoted up to 128
  int stages = 4;
  int blocks_resident = 1;   ///< thread blocks meant to share a multiprocessor
  int loader_registers = 0;  ///< with math_registers: the register hand-over; 0 for none
  int math_registers = 0;
  bool profiled = false;         ///< leaves timestamps of its roles in Params::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Rows of weights of one of a warpgroup's two sums.
inline constexpr int sum_rows = 64;

/// That share a tile.
TH_DEVICE constexpr int tile_warpgroups(const Config& c) { return c.by_turns ? 1 : c.math_warpgroups; }
TH_DEVICE constexpr int tile_outputs(const Config& c) {
  return tile_warpgroups(c) * sum_rows * (c.matrices == 2 ? 1 : 2);
}
/// Rows that one copy brings: those of the first, or second, sums of all warpgroups of a tile.
TH_DEVICE constexpr int weight_box_rows(const Config& c) { return tile_warpgroups(c) * sum_rows; }
TH_DEVICE constexpr SlotLayout slot_layout(const Config& c) {
  return {c.block_k, c.block_tokens, weight_box_rows(c), c.matrices, element_bytes(c.operand)};
}

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  return {static_cast<machine::u32>(c.least_tokens), static_cast<machine::u32>(c.block_tokens),
          static_cast<machine::u32>(c.token_step)};
}

TH_DEVICE constexpr bool promotes(const Config& c) { return grouped_gemm::promotes(c.operand, c.numerics); }
/// Floats of a thread's sums.
TH_DEVICE constexpr int sum_registers(const Config& c) { return (promotes(c) ? 2 : 1) * c.block_tokens; }
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
      .staging_bytes = finish_staging_bytes(c.output, 2),
      .math_warpgroups = c.math_warpgroups,
      .reading = c.by_turns ? pipeline::Reading::by_turns : pipeline::Reading::together,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = true,
      .release_early = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::columns
