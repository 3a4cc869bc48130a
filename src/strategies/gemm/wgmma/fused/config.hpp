#pragma once
/// The knobs of the dense products of 16-bit operands, and what follows from them. Plain values: the host chooses them,
/// the kernel is compiled for them.
///
/// Tokens (rows of A) are the M side of wgmma, weights (rows of B1 and B2) the N side. A tile is block_tokens ×
/// block_outputs. Its weights lie in a stage buffer as block_outputs gate rows followed by block_outputs up rows. Gate
/// and up of one output are thus elements i and i + block_outputs/2 of the same thread's accumulators. A product of one
/// matrix has block_outputs rows of it in a stage buffer.
#include "pipeline/schedule.hpp"
#include "pipeline/shape.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::fused {

using pipeline::Raster;

/// How gate and up are multiplied: what the strategies of these names differ in.
enum class Order : u8 {
  sequential,   ///< the gate's main loop, then up's, one fused epilogue
  interleaved,  ///< each tile of A is loaded once and used for both
  pingpong,     ///< as interleaved; two consumer warpgroups alternate: one computes while the other finishes its tile
};

enum class Epilogue : u8 {
  simt,  ///< threads store their registers
  tma,   ///< staged in shared memory and stored with TMA
};

struct Config {
  Order order = Order::interleaved;
  Number operand = Number::bf16;
  Number output = Number::bf16;
  int matrices = 2;  ///< gate and up, or one
  ActivationCode activation = ActivationCode::silu;
  bool bias = false;        ///< of one matrix
  int warpgroup_tiles = 1;  ///< 64-token tiles of each consumer warpgroup
  int math_warpgroups = 2;
  int block_outputs = 128;  ///< columns of C in a tile, and as many rows of each matrix
  int block_k = 64;         ///< k elements of a slot, a multiple of 64
  int stages = 4;
  int multicast = 1;  ///< blocks of a cluster, neighbours along the tokens, that load their weights for each other
  int split_k = 1;    ///< 2: pairs of blocks halve the k range and add up through distributed shared memory
  Epilogue epilogue = Epilogue::simt;
  Raster raster = Raster::rows_first;
  bool persistent = false;
  int loader_registers = 0;  ///< with math_registers: the register reallocation; 0 for none
  int math_registers = 0;
  bool profiled = false;  ///< leaves timestamps of its roles in Params::profile
  pipeline::Ablation ablation = pipeline::Ablation::none;
  bool dependent_launch = false;  ///< of the launch, not of the code: it may start before the one ahead has ended

  bool operator==(const Config&) const = default;
};

/// Elements of a 128-byte row: the width of a shared-memory panel.
inline constexpr int panel_k = 64;

TH_DEVICE constexpr int block_tokens(const Config& c) {
  return c.warpgroup_tiles * 64 * (c.order == Order::pingpong ? 1 : c.math_warpgroups);
}
/// Whether a slot has rows of one matrix alone: of the only one, or of gate and of up in turn.
TH_DEVICE constexpr bool has_one_matrix(const Config& c) { return c.matrices == 1 || c.order == Order::sequential; }
/// Rows of weights in one slot.
TH_DEVICE constexpr int slot_weights(const Config& c) { return (has_one_matrix(c) ? 1 : 2) * c.block_outputs; }
/// Walks along K.
TH_DEVICE constexpr int passes(const Config& c) { return c.matrices == 2 && c.order == Order::sequential ? 2 : 1; }
TH_DEVICE constexpr int token_bytes(const Config& c) { return block_tokens(c) * c.block_k * 2; }
TH_DEVICE constexpr int weight_bytes(const Config& c) { return slot_weights(c) * c.block_k * 2; }

/// Weights come in pieces of so many rows of one matrix; each block of a multicast group loads its share of the pieces
/// for all.
TH_DEVICE constexpr int weight_pieces(const Config& c) {
  return has_one_matrix(c) ? c.multicast : c.multicast <= 2 ? 2 : c.multicast;
}
TH_DEVICE constexpr int piece_rows(const Config& c) { return slot_weights(c) / weight_pieces(c); }

/// Columns of C that a block finishes: half a tile when another block finishes the other half.
TH_DEVICE constexpr int finished_columns(const Config& c) { return c.block_outputs / c.split_k; }

TH_DEVICE constexpr pipeline::Shape shape_of(const Config& c) {
  return {
      .stages = c.stages,
      .slot_bytes = token_bytes(c) + weight_bytes(c),
      .staging_bytes = c.epilogue == Epilogue::tma ? c.warpgroup_tiles * 64 * finished_columns(c) * 2 : 0,
      .math_warpgroups = c.math_warpgroups,
      .multicast_blocks = c.multicast,
      .split_blocks = c.split_k,
      .passes = passes(c),
      .reading = c.order == Order::pingpong ? pipeline::Reading::ping_pong : pipeline::Reading::cooperative,
      .loader_registers = c.loader_registers,
      .math_registers = c.math_registers,
      .persistent = c.persistent,
      .profiled = c.profiled,
      .ablation = c.ablation,
  };
}

}  // namespace thresher::strategies::gemm::fused
