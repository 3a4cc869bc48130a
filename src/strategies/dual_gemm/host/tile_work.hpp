#pragma once
/// The work of a fused dual GEMM in terms of its tile: what `fused` and `packed` have in common.
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm {

/// How one kernel goes over gate and up.
struct TileWork {
  int weight_rows = 128;       ///< of B1 and B2 together, in a tile
  int slot_weight_rows = 128;  ///< of B1 and B2 together, in a slot of the ring
  int tokens = 128;
  int k = 64;                     ///< elements of a slot
  int walks = 1;                  ///< over K, for one tile
  bool weights_are_rows = false;  ///< of the matrix instruction; else tokens are
  int row_granule = 64;           ///< rows that the matrix instruction takes at least
  MatrixType type = MatrixType::bits16;
  bool converts_weights = false;  ///< from NVFP4 to the matrix type
  bool converts_in_turns = false;
  int stages = 4;
  int cluster = 1;
  int split_k = 1;  ///< blocks of a cluster that divide a tile's K
  int blocks_per_multiprocessor = 1;
  bool persistent = false;
  bool tma_stores = false;
  bool hides_epilogue = false;
  bool dependent_launch = false;
};

/// Bits that an element takes in memory, its part of an NVFP4 scale included.
[[nodiscard]] double stored_bits(Format format, OperandRole role = OperandRole::tokens) noexcept;
[[nodiscard]] double stored_bits(MatrixType type) noexcept;

/// The least that a call reads and writes.
[[nodiscard]] double compulsory_bytes(const ProductProblem& problem) noexcept;

/// Of a block that turns `outputs` pairs of sums into outputs.
[[nodiscard]] EpilogueWork epilogue_work(const ProductProblem& problem, double outputs) noexcept;

/// Clocks in which `blocks` of a cluster, each with sums of `accumulator_bytes` of one tile, add them up.
[[nodiscard]] double exchange_clocks(double accumulator_bytes, int blocks) noexcept;

[[nodiscard]] TiledKernel tiled_kernel(const ProductProblem& problem, const TileWork& tile);

}  // namespace thresher::strategies::dual_gemm
