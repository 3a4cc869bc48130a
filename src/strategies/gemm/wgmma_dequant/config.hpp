#pragma once
/// The knobs of the products with packed NVFP4 weights, and what follows from them.
///
/// Weights are the M side of wgmma, dequantized into registers; tokens are the N side, in shared memory. A consumer
/// warpgroup owns 64 rows of weights: 32 outputs of gate and up, or 64 of one matrix. There are two kernels. The dense
/// one multiplies gate and up; a block has one tile of block_tokens. The grouped one is persistent; each of its tiles
/// takes the least of least_tokens … block_tokens columns that holds its rows. Where it splits K, each cluster has at
/// most one tile, of block_tokens.
#include "pipeline/grouped/tile_widths.hpp"
#include "pipeline/shape.hpp"
#include "pipeline/transposed_layout.hpp"
#include "strategies/gemm/device/finish_params.hpp"
#include "strategies/gemm/device/words.hpp"
#include "strategies/gemm/wgmma_dequant/device/fast_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

using pipeline::Overlap;

struct Config {
  bool dense = true;  ///< static tiles of one gate and up; else groups with a directory
  Numerics numerics = Numerics::exact;
  Number operand = Number::fp16;  ///< exact: tokens, and what weights are dequantized to
  Number output = Number::fp16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;  ///< grouped, as the next two
  bool row_weights = false;
  bool gathered = false;
  int math_warpgroups = 2;
  int least_tokens = 8;     ///< grouped: the fewest columns of a tile: 8, 16, 32, 64 or 128
  int block_tokens = 128;   ///< columns of a tile, at the most
  int token_step = 0;       ///< grouped: between widths of more than 64 columns; 0: each is twice the one below
  int blocks_per_slot = 2;  ///< weight blocks along K in a stage: of 64 (exact) or 128 (fast)
  int stages = 4;
  /// grouped, of dense rows: a block has one tile of block_tokens, and weights come before earlier launches have ended.
  bool static_tiles = false;
  int split_k = 1;          ///< blocks of a cluster that divide the k range of its one tile
  int blocks_resident = 1;  ///< thread blocks meant to share a multiprocessor
  Overlap overlap = Overlap::step;
  int loader_registers = 0;  ///< with math_registers: register reallocation; 0 for none
  int math_registers = 0;
  bool profiled = false;  ///< leaves timestamps of its roles where Params::profile says
  pipeline::Ablation ablation = pipeline::Ablation::none;  ///< dense
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// The overlap that was measured best. Blocks that share a multiprocessor hide each other's waits. Two warpgroups that
/// dequantize to e4m3 for 128 tokens or more do best when each runs a whole block of K ahead.
TH_DEVICE constexpr Overlap usual_overlap(Numerics numerics, int math_warpgroups, int block_tokens,
                                          int blocks_resident) {
  const bool is_apart = numerics == Numerics::fast && math_warpgroups == 2 && block_tokens >= 128;
  return blocks_resident > 1 ? Overlap::none : is_apart ? Overlap::block : Overlap::step;
}

/// A warpgroup's 64 rows are 32 outputs of gate and up, or 64 of one matrix.
TH_DEVICE constexpr int warpgroup_outputs(int matrices) {
  return static_cast<int>(pipeline::warpgroup_outputs) * (matrices == 2 ? 1 : 2);
}
TH_DEVICE constexpr int tile_outputs(const Config& c) { return c.math_warpgroups * warpgroup_outputs(c.matrices); }

/// Along K, of one block of weights.
TH_DEVICE constexpr u32 weight_block_k(Numerics numerics) {
  return numerics == Numerics::fast ? fast::block_k : block_k;
}
TH_DEVICE constexpr u32 weight_block_bytes(Numerics numerics) {
  return numerics == Numerics::fast ? fast::block_bytes : block_bytes;
}
/// Blocks of weights along K.
TH_DEVICE constexpr u32 weight_k_blocks(Numerics numerics, u32 k) {
  return numerics == Numerics::fast ? fast::k_blocks(k) : k_blocks(k);
}
/// Along K, of a stage.
TH_DEVICE constexpr u32 stage_k(const Config& c) {
  return static_cast<u32>(c.blocks_per_slot) * weight_block_k(c.numerics);
}
/// Stages that are unrolled together where the fragments of two blocks alternate.
TH_DEVICE constexpr int stages_at_once(const Config& c) {
  return c.blocks_per_slot % 2 == 1 && c.overlap != Overlap::none ? 2 : 1;
}
/// grouped: the stages along K, whole ones that are unrolled together. Blocks behind them are left out.
TH_DEVICE constexpr u32 k_steps(const Config& c, u32 k) {
  const u32 together = static_cast<u32>(stages_at_once(c));
  const u32 walked_k = together * stage_k(c);
  return (k + walked_k - 1) / walked_k * together;
}

/// Tokens beside a block of weights are rows of 128 bytes in both numerics: as many elements as the block has along K.
inline constexpr u32 token_row_bytes = 128;
TH_DEVICE constexpr int token_block_bytes(const Config& c) {
  return c.block_tokens * static_cast<int>(token_row_bytes);
}
TH_DEVICE constexpr int token_bytes(const Config& c) { return c.blocks_per_slot * token_block_bytes(c); }
/// One warpgroup's weights of a stage: contiguous in memory too, since blocks lie K first.
TH_DEVICE constexpr int warpgroup_weight_bytes(const Config& c) {
  return c.blocks_per_slot * static_cast<int>(weight_block_bytes(c.numerics));
}
TH_DEVICE constexpr int weight_bytes(const Config& c) { return c.math_warpgroups * warpgroup_weight_bytes(c); }

/// Tokens of a tile that one block of a split finishes.
TH_DEVICE constexpr int finished_tokens(const Config& c) { return c.block_tokens / c.split_k; }
TH_DEVICE constexpr bool is_persistent(const Config& c) { return !c.dense && !c.static_tiles && c.split_k == 1; }

TH_DEVICE constexpr pipeline::TileWidths tile_widths_of(const Config& c) {
  const int least = is_persistent(c) ? c.least_tokens : c.block_tokens;
  return {static_cast<u32>(least), static_cast<u32>(c.block_tokens), static_cast<u32>(c.token_step)};
}

/// Whole kibibytes, as Shape wants them.
TH_DEVICE constexpr int staging_bytes(const Config& c) {
  if (!c.dense) {
    return finish_staging_bytes(c.output, c.matrices == 2 ? 1 : 2);
  }
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch_bytes);
  return c.output == Number::fp32 ? 0 : (finished_tokens(c) * pitch_bytes + 1023) / 1024 * 1024;
}

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = (token_bytes(c) + weight_bytes(c) + 1023) / 1024 * 1024,
      .staging_bytes = staging_bytes(c),
      .math_warpgroups = c.math_warpgroups,
      .split_blocks = c.split_k,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = is_persistent(c),
      .release_early = true,
      .profiled = c.profiled,
      .ablation = c.ablation,
  };
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
