#pragma once
/// The work of a product in terms of its tile: what the strategies have in common.
///
/// The host does not know the rows of a call that has offsets. Such a call has the work of expected_rows dealt to the
/// experts at random. Dense problems are those of one expert.
#include "pipeline/grouped/tile_widths.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/device/words.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::gemm {

/// Bits that an element takes in memory, its part of an NVFP4 scale included.
[[nodiscard]] double stored_bits(Format format, OperandRole role = OperandRole::tokens) noexcept;
[[nodiscard]] double stored_bits(MatrixType type) noexcept;

/// The type of products of such numbers.
[[nodiscard]] constexpr MatrixType matrix_type(Number operand) noexcept {
  return operand == Number::e4m3 ? MatrixType::fp8 : MatrixType::bits16;
}

/// Whether tokens or weights have scales of blocks along K, which multiply before sums are added.
[[nodiscard]] constexpr bool has_block_scales(const ScalingKnobs& knobs) noexcept {
  return knobs.tokens == Scaling::block || knobs.weights == Scaling::block;
}

/// Rows that experts own in a usual call.
[[nodiscard]] double usual_rows(const ProductProblem& problem) noexcept;
/// Experts that have some of them, when each row's expert is drawn.
[[nodiscard]] double active_experts(const ProductProblem& problem) noexcept;
/// The same when no two rows have the same expert, as those of one token.
[[nodiscard]] double most_active_experts(const ProductProblem& problem) noexcept;
/// The least that a usual call reads and writes.
[[nodiscard]] double compulsory_bytes(const ProductProblem& problem) noexcept;

/// A multiplication and an addition for each element of K, in a usual call.
[[nodiscard]] double useful_operations(const ProductProblem& problem) noexcept;
/// A stage is given back a step late, and one is always being read.
[[nodiscard]] double loads_in_flight(int stages) noexcept;

/// The end of a tile with so many outputs.
[[nodiscard]] EpilogueWork epilogue_work(const ProductProblem& problem, double outputs) noexcept;
/// Clocks in which `blocks` of a cluster, each with sums of `accumulator_bytes` of one tile, add them up.
[[nodiscard]] double exchange_clocks(double accumulator_bytes, int blocks) noexcept;

/// How one kernel goes over its weights: static tiles over dense ones, or tiles of groups over those of an expert.
struct TileWork {
  int weight_rows = 128;                     ///< of all matrices, in a tile
  int slot_weight_rows = 128;                ///< dense: of all matrices, in a stage
  int tokens = 128;                          ///< dense
  int outputs = 128;                         ///< of groups
  pipeline::TileWidths tile_widths{8, 128};  ///< of groups
  int k = 64;                                ///< elements of a stage
  int walks = 1;                             ///< dense: over K, for one tile
  bool weights_are_rows = false;             ///< of the matrix instruction; else tokens are
  MatrixType type = MatrixType::bits16;
  double matrix_share = 0;        ///< strategies/work_model.hpp, of groups where it was measured: of sums in float32
  bool converts_weights = false;  ///< from NVFP4 to the matrix type
  bool converts_in_turns = false;
  int stages = 4;
  int cluster = 1;
  int split_k = 1;  ///< blocks of a cluster that divide a tile's K
  int blocks_per_multiprocessor = 1;
  bool persistent = false;
  bool tma_stores = false;
  bool hides_epilogue = false;  ///< under the next tile's products
  bool dependent_launch = false;
  double end_clocks = 0;  ///< strategies/work_model.hpp, as the next
  double dram_share = 0;
};
[[nodiscard]] TiledKernel tiled_kernel(const ProductProblem& problem, const TileWork& tile);

/// A usual expert's rows are cut into these tiles; the rows of a single expert are taken as they are.
struct RowTiles {
  double count = 0;    ///< of an active expert
  double columns = 0;  ///< of one, padding to the tile width included
};
[[nodiscard]] RowTiles usual_row_tiles(const ProductProblem& problem, pipeline::TileWidths tile_widths);
/// Weights that another of an expert's tiles reads again and L2 no longer holds.
[[nodiscard]] double bytes_read_again(const ProductProblem& problem, const RowTiles& rows) noexcept;

[[nodiscard]] TiledKernel grouped_kernel(const ProductProblem& problem, const TileWork& tile);

}  // namespace thresher::strategies::gemm
