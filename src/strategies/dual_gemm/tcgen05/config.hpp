#pragma once
/// The knobs of the dual GEMM whose NVFP4 operands Blackwell's tensor cores multiply as they are, and what follows from
/// them.
///
/// Weights are the M side of tcgen05, 128 rows a block: 64 outputs, gate and up. Tokens are the N side. One block
/// issues a product for itself, or one of two for both.
#include "pipeline/tensor_shape.hpp"
#include "strategies/dual_gemm/tcgen05/device/layout.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

using dual_gemm::ActivationCode;
using dual_gemm::Number;

struct Config {
  Number output = Number::fp16;
  ActivationCode activation = ActivationCode::silu;
  int blocks = 2;          ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;  ///< of a tile: 16 … 256 by 16
  int stages = 4;          ///< slots of the ring, 256 along K each
  int split_k = 1;         ///< 2: two products of a cluster halve the k range
  /// As many blocks as fit take tile after tile; sums are doubled, so that one tile is finished while the next is
  /// multiplied.
  bool persistent = false;
  /// Token scales have no signs: tokens, and blocked scales that fit, are read where they lie. A sign makes the outputs
  /// of its tile NaN.
  bool unsigned_scales = false;
  bool profiled = false;  ///< leaves timestamps of its roles in Params::profile
  pipeline::Ablation ablation = pipeline::Ablation::none;
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Outputs of a tile.
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.blocks * static_cast<int>(tile_rows_outputs); }

/// Of a slot, by each block. In a pair each block brings half of the tokens, and half of their scales into both.
TH_DEVICE constexpr u32 loaded_tokens(const Config& c) { return static_cast<u32>(c.block_tokens / c.blocks); }
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

/// Tokens of a tile that one block finishes.
TH_DEVICE constexpr int finished_tokens(const Config& c) { return c.block_tokens / c.split_k; }
/// Tokens whose sums a thread holds at a time.
TH_DEVICE constexpr int staged_tokens(const Config& c) {
  const int tokens = finished_tokens(c);
  return tokens % 64 == 0 ? 64 : tokens % 32 == 0 ? 32 : tokens % 16 == 0 ? 16 : 8;
}
TH_DEVICE constexpr int staging_bytes(const Config& c) {
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch(tile_rows_outputs));
  return c.output == Number::fp32 ? 0 : 2 * staged_tokens(c) * pitch_bytes;
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  return {
      .group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
      .stages = c.stages,
      .slot_bytes = static_cast<int>(slot_bytes(c)),
      .staging_bytes = staging_bytes(c),
      .sums = c.persistent ? 2 : 1,
      .sum_columns = c.block_tokens,
      .scale_columns = static_cast<int>((1 + token_scale_groups(c)) * slot_scale_blocks * scale_block_columns),
      .split_groups = c.split_k,
      .persistent = c.persistent,
      .profiled = c.profiled,
      .ablation = c.ablation,
  };
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
