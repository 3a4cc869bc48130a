#pragma once
/// The knobs of the grouped GEMMs with packed NVFP4 weights, and what follows from them.
///
/// As of the dual GEMM (strategies/dual_gemm/packed): weights are the M side of wgmma, dequantised into registers, and
/// tokens the N side. A math warpgroup owns 64 rows of weights, 32 outputs of gate and up or 64 of one matrix; a tile
/// takes the least of 8, 16, 32 … block_tokens columns that holds its rows.
#include "pipeline/grouped/rung.hpp"
#include "pipeline/shape.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::grouped_gemm::packed {

namespace weights = dual_gemm::packed;

using dual_gemm::packed::Numerics;
using pipeline::Overlap;

struct Config {
  Numerics numerics = Numerics::exact;
  Number operand = Number::fp16;  ///< exact: tokens, and what weights are dequantised to
  Number output = Number::fp16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int math_warpgroups = 2;
  int least_tokens = 8;     ///< columns that a tile takes at the least: 8, 16, 32, 64 or 128
  int block_tokens = 128;   ///< and at the most
  int token_step = 0;       ///< between widths of more than 64 columns; 0: each is twice the one below
  int blocks_per_slot = 2;  ///< weight blocks along K in a slot of the ring: of 64 (exact) or 128 (fast)
  int stages = 4;
  int blocks_resident = 1;  ///< thread blocks meant to share a multiprocessor
  Overlap overlap = Overlap::step;
  int loader_registers = 0;  ///< with math_registers: the register hand-over; 0 for none
  int math_registers = 0;
  bool profiled = false;         ///< leaves timestamps of its roles in Params::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

TH_DEVICE constexpr int warpgroup_outputs(const Config& c) {
  return static_cast<int>(pipeline::warpgroup_outputs) * (c.matrices == 2 ? 1 : 2);
}
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.math_warpgroups * warpgroup_outputs(c); }

/// Along K, of one block of weights.
TH_DEVICE constexpr u32 weight_block_k(Numerics numerics) {
  return numerics == Numerics::fast ? weights::fast::block_k : weights::block_k;
}
TH_DEVICE constexpr u32 weight_block_bytes(Numerics numerics) {
  return numerics == Numerics::fast ? weights::fast::block_bytes : weights::block_bytes;
}
/// Blocks of weights along K.
TH_DEVICE constexpr u32 weight_k_blocks(Numerics numerics, u32 k) {
  return numerics == Numerics::fast ? weights::fast::k_blocks(k) : weights::k_blocks(k);
}

/// Tokens beside a block of weights are rows of 128 bytes in both paths.
TH_DEVICE constexpr int token_block_bytes(const Config& c) {
  return c.block_tokens * static_cast<int>(weights::token_row_bytes);
}
TH_DEVICE constexpr int token_bytes(const Config& c) { return c.blocks_per_slot * token_block_bytes(c); }
/// One warpgroup's weights of a slot: contiguous in memory too, since blocks lie K first.
TH_DEVICE constexpr int warpgroup_weight_bytes(const Config& c) {
  return c.blocks_per_slot * static_cast<int>(weight_block_bytes(c.numerics));
}

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  return {static_cast<machine::u32>(c.least_tokens), static_cast<machine::u32>(c.block_tokens),
          static_cast<machine::u32>(c.token_step)};
}

TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = (token_bytes(c) + c.math_warpgroups * warpgroup_weight_bytes(c) + 1023) / 1024 * 1024,
      .staging_bytes = finish_staging_bytes(c.output, c.matrices == 2 ? 1 : 2),
      .math_warpgroups = c.math_warpgroups,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = true,
      .release_early = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::packed
