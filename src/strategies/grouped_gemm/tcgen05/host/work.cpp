#include "strategies/grouped_gemm/tcgen05/host/work.hpp"

#include "strategies/gemm/work.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {
namespace {

constexpr double bytes_of_sum = 4;

/// Tiles of the columns that a usual expert's rows take.
TensorTiles tiles(const ProductProblem& problem, const Config& config) {
  const RowTiles rows = usual_row_tiles(problem, tile_widths_of(config));
  const double loaded = rows.columns / config.blocks;
  TensorTiles of;
  of.steps = weights::k_steps(static_cast<u32>(problem.k));
  of.products = weights::slot_products;
  of.product_operations = 2.0 * weights::tile_rows * rows.columns * weights::product_k;
  of.operand_bytes = (weights::tile_rows + loaded) * weights::product_row_bytes;
  of.l2_bytes = static_cast<double>(weights::weight_block_bytes) + weights::weight_scale_bytes +
                token_scale_bytes(config) + loaded * weights::slot_row_bytes;
  of.tensor_memory_bytes = bytes_of_sum * weights::tile_rows * rows.columns;
  of.epilogue = epilogue_work(problem, block_outputs(config) * rows.columns);
  return of;
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  const auto k = static_cast<double>(problem.k);
  WorkModel work;
  work.parts.emplace_back(
      MemoryPass{"preparing the rows", 2 * usual_rows(problem) * k * dual_gemm::stored_bits(problem.a) / 8, true});
  work.parts.emplace_back(grouped_tensor_kernel(problem,
                                                {.tile_widths = tile_widths_of(config),
                                                 .outputs = static_cast<int>(tile_outputs(config)),
                                                 .blocks = config.blocks,
                                                 .stages = config.stages,
                                                 .split_k = config.split_k,
                                                 .type = MatrixType::nvfp4},
                                                tiles(problem, config)));
  return work;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
