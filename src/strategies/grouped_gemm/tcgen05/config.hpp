#pragma once
/// The knobs of the grouped GEMMs whose NVFP4 operands Blackwell's tensor cores multiply as they are, and what follows
/// from them.
///
/// As of the dual GEMM (strategies/dual_gemm/tcgen05): weights are the M side, 128 rows a block, 64 outputs of gate and
/// up or 128 of one matrix; tokens are the N side. A tile's products have the least of 16, 32, 64 … block_tokens
/// columns that holds its rows.
#include "pipeline/grouped/rung.hpp"
#include "pipeline/tensor_shape.hpp"
#include "strategies/dual_gemm/tcgen05/device/layout.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

namespace weights = dual_gemm::tcgen05;

struct Config {
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int blocks = 2;          ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;  ///< columns that a tile takes at the most: 16, 32, 64, or beyond a multiple of token_step
  int token_step = 16;     ///< between widths of more than 64 columns: 16, 32 or 64
  int stages = 4;          ///< slots of the ring, 256 along K each
  int split_k = 1;         ///< 2: two products of a cluster halve the k range of the same tiles
  bool profiled = false;   ///< leaves timestamps of its roles in Params::profile
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  constexpr u32 min_columns = 16;  // of a pair's product
  return {min_columns, static_cast<u32>(c.block_tokens), static_cast<u32>(c.token_step)};
}

/// Outputs of one block, and of a tile.
TH_DEVICE constexpr u32 block_outputs(const Config& c) {
  return c.matrices == 2 ? weights::tile_rows_outputs : weights::tile_rows;
}
TH_DEVICE constexpr u32 tile_outputs(const Config& c) { return block_outputs(c) * static_cast<u32>(c.blocks); }

/// Of a slot: scales of all columns that a tile may have, half of their blocks along K by each block of a pair.
TH_DEVICE constexpr u32 token_scale_groups(const Config& c) {
  return weights::scale_groups(static_cast<u32>(c.block_tokens));
}
TH_DEVICE constexpr u32 loaded_scale_blocks(const Config& c) {
  return weights::loaded_scale_blocks(static_cast<u32>(c.blocks));
}
TH_DEVICE constexpr u32 token_scale_bytes(const Config& c) {
  return token_scale_groups(c) * weights::slot_scale_blocks * weights::scale_block_bytes;
}

/// A slot: weights, tokens, scales of the weights, scales of the tokens.
TH_DEVICE constexpr u32 max_token_bytes(const Config& c) {
  return static_cast<u32>(c.block_tokens / c.blocks) * weights::slot_row_bytes;
}
TH_DEVICE constexpr u32 slot_bytes(const Config& c) {
  return weights::weight_block_bytes + max_token_bytes(c) + weights::weight_scale_bytes + token_scale_bytes(c);
}

TH_DEVICE constexpr FinishKnobs finish_knobs(const Config& c) {
  return {.output = c.output,
          .matrices = c.matrices,
          .activation = c.activation,
          .bias = c.bias,
          .row_weights = c.row_weights,
          .gathered = c.gathered};
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  return {
      .group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
      .stages = c.stages,
      .slot_bytes = static_cast<int>(slot_bytes(c)),
      .staging_bytes = finish_staging_bytes(c.output, c.matrices == 2 ? 2 : 4),
      .sums = 2,
      .sum_columns = c.block_tokens,
      .scale_columns =
          static_cast<int>((1 + token_scale_groups(c)) * weights::slot_scale_blocks * weights::scale_block_columns),
      .split_groups = c.split_k,
      .persistent = true,
      .profiled = c.profiled,
  };
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
