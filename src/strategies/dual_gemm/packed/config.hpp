#pragma once
/// The knobs of the dual GEMM with packed NVFP4 weights, and what follows from them.
///
/// Weights are the M side of wgmma, dequantised into registers; tokens are the N side, in shared memory. A math
/// warpgroup owns 32 outputs (32 gate and 32 up rows), a tile is 32·math_warpgroups outputs × block_tokens.
#include "pipeline/shape.hpp"
#include "pipeline/transposed_layout.hpp"
#include "strategies/dual_gemm/packed/device/fast_layout.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::dual_gemm::packed {

using dual_gemm::ActivationCode;
using dual_gemm::Number;
using dual_gemm::Numerics;
using pipeline::Overlap;

struct Config {
  Numerics numerics = Numerics::exact;
  Number operand = Number::fp16;  ///< exact: tokens, and what weights are dequantised to
  Number output = Number::fp16;
  ActivationCode activation = ActivationCode::silu;
  int math_warpgroups = 2;
  int block_tokens = 128;   ///< 8, 16, 32, 64, 128 or 256
  int blocks_per_slot = 2;  ///< weight blocks along K in a slot of the ring: of 64 (exact) or 128 (fast)
  int stages = 4;
  int split_k = 1;          ///< 2: pairs of blocks halve the k range
  int blocks_resident = 1;  ///< thread blocks meant to share a multiprocessor
  Overlap overlap = Overlap::step;
  int loader_registers = 0;  ///< with math_registers: the register hand-over; 0 for none
  int math_registers = 0;
  bool profiled = false;  ///< leaves timestamps of its roles in Params::profile
  pipeline::Ablation ablation = pipeline::Ablation::none;
  bool dependent_launch = true;  ///< of the launches, not of the code: they may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// What was measured best: blocks that share a multiprocessor hide each other's waits; two warpgroups that fold for 128
/// tokens or more do best when each runs a whole block of K ahead.
TH_DEVICE constexpr Overlap usual_overlap(Numerics numerics, int math_warpgroups, int block_tokens,
                                          int blocks_resident) {
  const bool apart = numerics == Numerics::fast && math_warpgroups == 2 && block_tokens >= 128;
  return blocks_resident > 1 ? Overlap::none : apart ? Overlap::block : Overlap::step;
}

TH_DEVICE constexpr int tile_outputs(const Config& c) {
  return c.math_warpgroups * static_cast<int>(pipeline::warpgroup_outputs);
}
/// Along K, of one block of weights.
TH_DEVICE constexpr u32 weight_block_k(const Config& c) {
  return c.numerics == Numerics::fast ? fast::block_k : block_k;
}
TH_DEVICE constexpr u32 weight_block_bytes(const Config& c) {
  return c.numerics == Numerics::fast ? fast::block_bytes : block_bytes;
}
/// Tokens beside a block of weights are rows of 128 bytes in both paths.
inline constexpr u32 token_row_bytes = 128;
TH_DEVICE constexpr int token_block_bytes(const Config& c) {
  return c.block_tokens * static_cast<int>(token_row_bytes);
}
TH_DEVICE constexpr int token_bytes(const Config& c) { return c.blocks_per_slot * token_block_bytes(c); }
/// One warpgroup's weights of a slot: contiguous in memory too, since blocks lie K first.
TH_DEVICE constexpr int warpgroup_weight_bytes(const Config& c) {
  return c.blocks_per_slot * static_cast<int>(weight_block_bytes(c));
}
TH_DEVICE constexpr int slot_load_bytes(const Config& c) {
  return token_bytes(c) + c.math_warpgroups * warpgroup_weight_bytes(c);
}
TH_DEVICE constexpr int finished_tokens(const Config& c) { return c.block_tokens / c.split_k; }
/// Whole kibibytes, as Shape wants them.
TH_DEVICE constexpr int staging_bytes(const Config& c) {
  constexpr int pitch_bytes = static_cast<int>(pipeline::transposed_pitch_bytes);
  return c.output == Number::fp32 ? 0 : (finished_tokens(c) * pitch_bytes + 1023) / 1024 * 1024;
}

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = (slot_load_bytes(c) + 1023) / 1024 * 1024,
      .staging_bytes = staging_bytes(c),
      .math_warpgroups = c.math_warpgroups,
      .split_blocks = c.split_k,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .release_early = true,
      .profiled = c.profiled,
      .ablation = c.ablation,
  };
}

}  // namespace thresher::strategies::dual_gemm::packed
