#pragma once
/// The knobs of the products of plain operands on Blackwell's tensor cores, and what follows from them. The operands
/// are multiplied where they lie, without scales along K: 16-bit numbers, and FP8 with per-tensor or per-row scales.
///
/// Weights are the M side of tcgen05, 128 rows per block. They are rows of the gate and the same rows of the up, each
/// with an accumulator of its own, or rows of one matrix. Tokens are the N side. One block issues a product for itself,
/// or one of two for both. A tile of groups has the least of 16, 32, 64 … block_tokens columns that holds its rows.
#include "strategies/gemm/device/tcgen05_config.hpp"

namespace thresher::strategies::gemm::tcgen05 {

using machine::u32;

struct Config {
  Number operand = Number::bf16;           ///< fp16, bf16 or e4m3
  Scaling token_scaling = Scaling::none;   ///< of e4m3, what a scale of the tokens is of
  Scaling weight_scaling = Scaling::none;  ///< likewise of the weights
  bool dense = false;                      ///< static tiles of one gate and up; else groups with a directory
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;
  bool row_weights = false;
  bool gathered = false;
  int blocks = 2;           ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;   ///< columns of a tile, of groups at most: 16 … 256 by 16
  int token_step = 16;      ///< of groups, between widths of more than 64 columns: 16, 32 or 64
  int stages = 4;           ///< slots of the ring, 128 bytes along K each
  int split_k = 1;          ///< 2: two products of a cluster halve the k range
  bool persistent = false;  ///< dense: as many blocks as fit take tile after tile, as those of groups always do
  bool profiled = false;    ///< leaves timestamps of its roles in the parameter's `profile`
  pipeline::Ablation ablation = pipeline::Ablation::none;
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

/// A slot: rows of the gate, or of the one matrix, those of the up, tokens.
TH_DEVICE constexpr u32 weight_bytes(const Config& c) { return static_cast<u32>(c.matrices) * matrix_bytes; }
TH_DEVICE constexpr u32 slot_bytes(const Config& c) { return weight_bytes(c) + loaded_tokens(c) * slot_row_bytes; }

TH_DEVICE constexpr int dense_chunk_tokens(const Config& c) { return chunk_tokens(c, 32); }

/// Outputs in eights, of each finishing warp.
inline constexpr int warp_eights = static_cast<int>(block_outputs / pipeline::warpgroup_outputs);

TH_DEVICE constexpr int staging_bytes(const Config& c) {
  if (!c.dense) {
    return finish_staging_bytes(c.output, warp_eights);
  }
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch(block_outputs));
  return c.output == Number::fp32 ? 0 : 2 * dense_chunk_tokens(c) * pitch_bytes;
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  pipeline::TensorShape shape = tensor_shape(c);
  shape.slot_bytes = static_cast<int>(slot_bytes(c));
  shape.staging_bytes = staging_bytes(c);
  shape.sum_columns = c.matrices * c.block_tokens;
  shape.sum_parts = c.dense ? 2 : 1;
  return shape;
}

}  // namespace thresher::strategies::gemm::tcgen05
