#pragma once
/// The knobs of the products of NVFP4 operands, which Blackwell's tensor cores multiply as they are, and what follows
/// from them.
///
/// Weights are the M side of tcgen05, 128 rows a block: 64 outputs, gate and up, or 128 of one matrix. Tokens are the N
/// side. One block issues a product for itself, or one of two for both. A tile of groups has the least of 16, 32, 64 …
/// block_tokens columns that holds its rows.
#include "strategies/gemm/device/tcgen05_config.hpp"
#include "strategies/gemm/tcgen05_block_scaled/device/layout.hpp"

namespace thresher::strategies::gemm::tcgen05_block_scaled {

struct Config {
  /// Dense: token scales have no signs. Tokens, and blocked scales that fit, are read where they lie. A sign makes the
  /// outputs of its tile NaN.
  bool unsigned_scales = false;
  bool dense = false;  ///< static tiles of one gate and up; else groups with a directory
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int blocks = 2;           ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;   ///< columns of a tile, of groups at most: 16 … 256 by 16
  int token_step = 16;      ///< of groups, between widths of more than 64 columns: 16, 32 or 64
  int stages = 4;           ///< slots of the ring, 256 along K each
  int split_k = 1;          ///< 2: two products of a cluster halve the k range
  bool persistent = false;  ///< dense: as many blocks as fit take tile after tile, as those of groups always do
  bool profiled = false;    ///< leaves timestamps of its roles in the parameter's `profile`
  pipeline::Ablation ablation = pipeline::Ablation::none;
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Outputs of one block, and of a tile.
TH_DEVICE constexpr u32 block_outputs(const Config& c) { return c.matrices == 2 ? tile_rows_outputs : tile_rows; }
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.blocks * static_cast<int>(block_outputs(c)); }

/// In a pair each block brings half of the scales of a slot's tokens into both.
TH_DEVICE constexpr u32 token_scale_groups(const Config& c) { return scale_groups(static_cast<u32>(c.block_tokens)); }
TH_DEVICE constexpr u32 loaded_scale_blocks(const Config& c) { return loaded_scale_blocks(static_cast<u32>(c.blocks)); }

/// A slot: weights, tokens, scales of the weights, scales of the tokens.
TH_DEVICE constexpr u32 token_bytes(const Config& c) { return loaded_tokens(c) * slot_row_bytes; }
TH_DEVICE constexpr u32 token_scale_bytes(const Config& c) {
  return token_scale_groups(c) * slot_scale_blocks * scale_block_bytes;
}
TH_DEVICE constexpr u32 slot_bytes(const Config& c) {
  return weight_block_bytes + token_bytes(c) + weight_scale_bytes + token_scale_bytes(c);
}

TH_DEVICE constexpr int dense_chunk_tokens(const Config& c) { return chunk_tokens(c, 64); }
TH_DEVICE constexpr int staging_bytes(const Config& c) {
  if (!c.dense) {
    return finish_staging_bytes(c.output, c.matrices == 2 ? 2 : 4);
  }
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch(tile_rows_outputs));
  return c.output == Number::fp32 ? 0 : 2 * dense_chunk_tokens(c) * pitch_bytes;
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  pipeline::TensorShape shape = tensor_shape(c);
  shape.slot_bytes = static_cast<int>(slot_bytes(c));
  shape.staging_bytes = staging_bytes(c);
  shape.sum_columns = c.block_tokens;
  shape.scale_columns = static_cast<int>((1 + token_scale_groups(c)) * slot_scale_blocks * scale_block_columns);
  return shape;
}

}  // namespace thresher::strategies::gemm::tcgen05_block_scaled
