#pragma once
/// The knobs of the products on Blackwell's tensor cores, and what follows from them. Plain operands are multiplied
/// where they lie, without scales along K: 16-bit numbers, and FP8 with per-tensor or per-row scales. NVFP4 operands
/// are multiplied with their scales.
///
/// Weights are the M side of tcgen05, 128 rows per block. Plain ones are rows of the gate and the same rows of the up,
/// each with an accumulator of its own, or rows of one matrix. NVFP4 ones are 64 outputs, gate and up, or 128 of one
/// matrix. Tokens are the N side. One block issues a product for itself, or one of two for both. A tile of groups has
/// the least of 16, 32, 64 … block_tokens columns that holds its rows.
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/tensor_shape.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/tcgen05/device/layout.hpp"

namespace thresher::strategies::gemm::tcgen05 {

struct Config {
  bool nvfp4 = false;                      ///< both operands; else plain ones, of which the next three tell
  Number operand = Number::bf16;           ///< fp16, bf16 or e4m3
  Scaling token_scaling = Scaling::none;   ///< of e4m3, what a scale of the tokens is of
  Scaling weight_scaling = Scaling::none;  ///< likewise of the weights
  /// Dense NVFP4: token scales have no signs. Tokens, and blocked scales that fit, are read where they lie. A sign
  /// makes the outputs of its tile NaN.
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
  int stages = 4;           ///< stage buffers, 128 bytes along K each
  int split_k = 1;          ///< 2: two products of a cluster halve the k range
  bool persistent = false;  ///< dense: as many blocks as fit take tile after tile, as those of groups always do
  bool profiled = false;    ///< leaves timestamps of its roles in the parameter's `profile`
  pipeline::Ablation ablation = pipeline::Ablation::none;
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Elements along K of a stage, and of one instruction.
TH_DEVICE constexpr u32 slot_k(const Config& c) {
  return c.nvfp4 ? block_scaled::slot_k : slot_row_bytes / static_cast<u32>(element_bytes(c.operand));
}
TH_DEVICE constexpr u32 product_k(const Config& c) { return slot_k(c) / slot_products; }

/// Outputs of one block, and of a tile.
TH_DEVICE constexpr u32 block_outputs(const Config& c) {
  return c.nvfp4 && c.matrices == 2 ? block_scaled::tile_rows_outputs : block_rows;
}
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.blocks * static_cast<int>(block_outputs(c)); }

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  constexpr u32 min_columns = 16;  // of a pair's product
  return {min_columns, static_cast<u32>(c.block_tokens), static_cast<u32>(c.token_step)};
}

/// The tokens of a stage that each block brings: in a pair half of them.
TH_DEVICE constexpr u32 loaded_tokens(const Config& c) { return static_cast<u32>(c.block_tokens / c.blocks); }
/// NVFP4: in a pair each block brings half of the scales of a stage's tokens into both.
TH_DEVICE constexpr u32 token_scale_groups(const Config& c) {
  return block_scaled::scale_groups(static_cast<u32>(c.block_tokens));
}
TH_DEVICE constexpr u32 loaded_scale_blocks(const Config& c) {
  return block_scaled::loaded_scale_blocks(static_cast<u32>(c.blocks));
}

/// Dense: tokens of a tile that one block finishes.
TH_DEVICE constexpr int finished_tokens(const Config& c) { return c.block_tokens / c.split_k; }
/// Dense: those whose sums a thread holds at a time. Both are multiples of 8.
TH_DEVICE constexpr int dense_chunk_tokens(const Config& c) {
  int most = c.nvfp4 ? 64 : 32;
  while (finished_tokens(c) % most != 0) {
    most /= 2;
  }
  return most;
}

/// Gate and up have an accumulator each where their rows are not of one block of weights.
TH_DEVICE constexpr int accumulators(const Config& c) { return c.nvfp4 ? 1 : c.matrices; }

/// A stage has weights, tokens, scales of the weights, and scales of the tokens. Plain weights are rows of the gate or
/// of the one matrix, then those of the up.
TH_DEVICE constexpr u32 weight_bytes(const Config& c) { return static_cast<u32>(accumulators(c)) * weight_block_bytes; }
TH_DEVICE constexpr u32 token_bytes(const Config& c) { return loaded_tokens(c) * slot_row_bytes; }
TH_DEVICE constexpr u32 token_scale_bytes(const Config& c) {
  return token_scale_groups(c) * block_scaled::slot_scale_blocks * block_scaled::scale_block_bytes;
}
TH_DEVICE constexpr u32 slot_bytes(const Config& c) {
  return weight_bytes(c) + token_bytes(c) + (c.nvfp4 ? block_scaled::weight_scale_bytes + token_scale_bytes(c) : 0);
}

TH_DEVICE constexpr int staging_bytes(const Config& c) {
  if (!c.dense) {
    return finish_staging_bytes(c.output, block_outputs(c) / pipeline::warpgroup_outputs);
  }
  const int pitch_bytes = static_cast<int>(pipeline::transposed_pitch(block_outputs(c)));
  return c.output == Number::fp32 ? 0 : 2 * dense_chunk_tokens(c) * pitch_bytes;
}

TH_DEVICE constexpr int scale_columns(const Config& c) {
  return static_cast<int>((1 + token_scale_groups(c)) * block_scaled::slot_scale_blocks *
                          block_scaled::scale_block_columns);
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  const bool persistent = !c.dense || c.persistent;
  return {.group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
          .stages = c.stages,
          .slot_bytes = static_cast<int>(slot_bytes(c)),
          .staging_bytes = staging_bytes(c),
          .sums = persistent ? 2 : 1,
          .sum_columns = accumulators(c) * c.block_tokens,
          .sum_parts = c.dense ? accumulators(c) : 1,
          .scale_columns = c.nvfp4 ? scale_columns(c) : 0,
          .split_groups = c.split_k,
          .persistent = persistent,
          .profiled = c.profiled,
          .ablation = c.ablation};
}

}  // namespace thresher::strategies::gemm::tcgen05
