#pragma once
/// The knobs of the dual GEMM whose operands Blackwell's tensor cores multiply where they lie, without scales of
/// theirs: 16-bit numbers, and FP8 whose scales are of whole rows or of the whole matrix. And what follows from them.
///
/// Weights are the M side of tcgen05: 128 rows of the gate and the same rows of the up a block, each with an
/// accumulator of its own, so that they are read where they lie. Tokens are the N side. One block issues a product for
/// itself, or one of two for both.
#include "pipeline/tensor_shape.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

using dual_gemm::ActivationCode;
using dual_gemm::Number;
using dual_gemm::Scaling;
using machine::u32;

struct Config {
  Number operand = Number::bf16;           ///< fp16, bf16 or e4m3
  Scaling token_scaling = Scaling::none;   ///< of e4m3, what a scale of the tokens is of
  Scaling weight_scaling = Scaling::none;  ///< likewise of the weights
  Number output = Number::bf16;
  ActivationCode activation = ActivationCode::silu;
  int blocks = 2;           ///< that share a product: 1, or the 2 of a pair
  int block_tokens = 128;   ///< of a tile: 16 … 256 by 16
  int stages = 4;           ///< slots of the ring, 128 bytes along K each
  int split_k = 1;          ///< 2: two products of a cluster halve the k range
  bool persistent = false;  ///< as many blocks as fit take tile after tile, with two pairs of accumulators
  bool profiled = false;    ///< leaves timestamps of its roles in Params::profile
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
inline constexpr u32 weight_bytes = block_outputs * slot_row_bytes;  ///< of a slot, of the gate or of the up

/// Outputs of a tile.
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.blocks * static_cast<int>(block_outputs); }

/// Of a slot, by each block. In a pair each block brings half of the tokens.
TH_DEVICE constexpr u32 loaded_tokens(const Config& c) { return static_cast<u32>(c.block_tokens / c.blocks); }
/// A slot: the gate's rows, the up's, tokens.
TH_DEVICE constexpr u32 slot_bytes(const Config& c) { return 2 * weight_bytes + loaded_tokens(c) * slot_row_bytes; }

/// Tokens of a tile that one block finishes.
TH_DEVICE constexpr int finished_tokens(const Config& c) { return c.block_tokens / c.split_k; }
/// Tokens whose sums a thread holds at a time, of the gate and of the up.
TH_DEVICE constexpr int staged_tokens(const Config& c) {
  const int tokens = finished_tokens(c);
  return tokens % 32 == 0 ? 32 : tokens % 16 == 0 ? 16 : 8;
}
TH_DEVICE constexpr int staging_bytes(const Config& c) {
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch(block_outputs));
  return c.output == Number::fp32 ? 0 : 2 * staged_tokens(c) * pitch_bytes;
}

TH_DEVICE constexpr pipeline::TensorShape shape_of(const Config& c) {
  return {
      .group = c.blocks == 2 ? machine::Group::pair : machine::Group::block,
      .stages = c.stages,
      .slot_bytes = static_cast<int>(slot_bytes(c)),
      .staging_bytes = staging_bytes(c),
      .sums = c.persistent ? 2 : 1,
      .sum_columns = 2 * c.block_tokens,
      .sum_parts = 2,
      .split_groups = c.split_k,
      .persistent = c.persistent,
      .profiled = c.profiled,
      .ablation = c.ablation,
  };
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
