#pragma once
/// The work of a grouped product in terms of its tile: what the strategies have in common. Nobody on the host knows the
/// rows of a call; the work is that of expected_rows dealt to the experts at random.
#include "pipeline/grouped/rung.hpp"
#include "strategies/dual_gemm/device/words.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/device/plain_params.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::grouped_gemm {

/// That multiplies such numbers.
[[nodiscard]] constexpr MatrixType matrix_type(dual_gemm::Number operand) noexcept {
  return operand == dual_gemm::Number::e4m3 ? MatrixType::fp8 : MatrixType::bits16;
}

/// Whether tokens or weights have scales of blocks along K, which multiply before sums are added.
[[nodiscard]] constexpr bool has_block_scales(const ScalingKnobs& knobs) noexcept {
  return knobs.tokens == dual_gemm::Scaling::block || knobs.weights == dual_gemm::Scaling::block;
}

/// How one kernel goes over the weights of an expert.
struct GroupedTile {
  int weight_rows = 256;  ///< of all matrices, in a tile
  int outputs = 128;
  pipeline::TileWidths tile_widths{8, 128};
  int k = 64;  ///< elements of a slot
  MatrixType type = MatrixType::bits16;
  double matrix_share = 0;        ///< strategies/work_model.hpp, where it was measured: of sums that are promoted
  bool converts_weights = false;  ///< from NVFP4 to the matrix type
  bool converts_in_turns = false;
  int stages = 4;
  int blocks_per_multiprocessor = 1;
  bool dependent_launch = false;
  bool tokens_are_rows = false;  ///< of the matrix instruction; else weights are
  bool hides_epilogue = false;   ///< under the next tile's products
};

/// Rows that experts own in a usual call.
[[nodiscard]] double usual_rows(const ProductProblem& problem) noexcept;
/// Experts that have some of them, when each row's expert is drawn.
[[nodiscard]] double active_experts(const ProductProblem& problem) noexcept;
/// The least that a usual call reads and writes.
[[nodiscard]] double compulsory_bytes(const ProductProblem& problem) noexcept;

/// What a usual expert's rows are cut into: of one expert those that there are.
struct RowTiles {
  double count = 0;    ///< of an active expert
  double columns = 0;  ///< of one, the rungs' padding included
};
[[nodiscard]] RowTiles usual_row_tiles(const ProductProblem& problem, pipeline::TileWidths tile_widths);
/// Of the weights that another of an expert's tiles reads again, what L2 no longer holds.
[[nodiscard]] double bytes_read_again(const ProductProblem& problem, const RowTiles& rows) noexcept;
/// Of a tile with so many outputs.
[[nodiscard]] EpilogueWork grouped_epilogue(const ProductProblem& problem, double outputs);

/// A product whose sums lie in tensor memory.
struct GroupedTensorTile {
  pipeline::TileWidths tile_widths{16, 128, 16};
  int outputs = 128;
  int blocks = 2;  ///< that share a product
  int stages = 4;
  int split_k = 1;
  MatrixType type = MatrixType::bits16;
};
/// `of` says of one tile of a whole k range all but how many there are; it has the columns that a usual expert's rows
/// take.
[[nodiscard]] TensorKernel grouped_tensor_kernel(const ProductProblem& problem, const GroupedTensorTile& tile,
                                                 TensorTiles of);

[[nodiscard]] TiledKernel grouped_kernel(const ProductProblem& problem, const GroupedTile& tile);

}  // namespace thresher::strategies::grouped_gemm
