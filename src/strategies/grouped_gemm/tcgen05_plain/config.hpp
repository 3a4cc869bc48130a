#pragma once
/// The knobs of the grouped GEMMs whose operands Blackwell's tensor cores multiply where they lie, without scales of
/// theirs: 16-bit numbers, and FP8 whose scales are of whole rows or of whole matrices. And what follows from them.
///
/// As of the dual GEMM (strategies/dual_gemm/tcgen05_plain): weights are the M side of tcgen05 and are read where
/// they lie, 128 rows of the gate and the same rows of the up a block, each with an accumulator of its own; of one
/// matrix 128 rows. Tokens are the N side: a tile's products have the least of 16, 32, 64 … block_tokens columns that
/// holds its rows.
#include "pipeline/grouped/rung.hpp"
#include "pipeline/tensor_shape.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

using dual_gemm::ActivationCode;
using dual_gemm::Number;
using dual_gemm::Scaling;
using machine::u32;

struct Config {
  Number operand = Number::bf16;           ///< fp16, bf16 or e4m3
  Scaling token_scaling = Scaling::none;   ///< of e4m3, what a scale of the tokens is of
  Scaling weight_scaling = Scaling::none;  ///< likewise of the weights
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int blocks = 2;          ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;  ///< columns that a tile takes at the most: 16, 32, 64, or beyond a multiple of token_step
  int token_step = 16;     ///< between widths of more than 64 columns: 16, 32 or 64
  int stages = 4;          ///< slots of the ring, 128 bytes along K each
  int split_k = 1;         ///< 2: two products of a cluster halve the k range of the same tiles
  bool profiled = false;   ///< leaves timestamps of its roles in PlainParams::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

inline constexpr u32 block_outputs = 128;  ///< of one block
inline constexpr u32 slot_row_bytes = 128;
inline constexpr u32 product_row_bytes = 32;  ///< along K, of one instruction
inline constexpr u32 slot_products = slot_row_bytes / product_row_bytes;
/// Elements along K of a slot, and of one instruction.
TH_DEVICE constexpr u32 slot_k(const Config& c) { return slot_row_bytes / static_cast<u32>(element_bytes(c.operand)); }
TH_DEVICE constexpr u32 product_k(const Config& c) { return slot_k(c) / slot_products; }
inline constexpr u32 matrix_bytes = block_outputs * slot_row_bytes;  ///< of a slot, of one matrix

/// Outputs of a tile.
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.blocks * static_cast<int>(block_outputs); }

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  constexpr u32 min_columns = 16;  // of a pair's product
  return {min_columns, static_cast<u32>(c.block_tokens), static_cast<u32>(c.token_step)};
}

/// A slot: rows of the gate, or of the one matrix, those of the up, tokens. In a pair each block brings half of the
/// tokens.
TH_DEVICE constexpr u32 weight_bytes(const Config& c) { return static_cast<u32>(c.matrices) * matrix_bytes; }
TH_DEVICE constexpr u32 slot_bytes(const Config& c) {
  return weight_bytes(c) + static_cast<u32>(c.block_tokens / c.blocks) * slot_row_bytes;
}

TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

/// Outputs in eights, of each finishing warp.
inline constexpr int warp_eights = static_cast<int>(block_outputs / pipeline::warpgroup_outputs);

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  return {
      .group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
      .stages = c.stages,
      .slot_bytes = static_cast<int>(slot_bytes(c)),
      .staging_bytes = finish_staging_bytes(c.output, warp_eights),
      .sums = 2,
      .sum_columns = c.matrices * c.block_tokens,
      .split_groups = c.split_k,
      .persistent = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
