#include "strategies/grouped_gemm/tcgen05/host/work.hpp"

#include <algorithm>
#include <cmath>

#include "core/integers.hpp"
#include "strategies/dual_gemm/host/tile_work.hpp"
#include "strategies/grouped_gemm/host/work.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {
namespace {

constexpr double bytes_of_sum = 4;

/// Tiles of the columns that a usual expert's rows take.
TensorTiles tiles(const GroupedProblem& problem, const Config& config) {
  const RowTiles rows = usual_row_tiles(problem, rungs_of(config));
  const double loaded = rows.columns / config.blocks;
  const auto column_tiles = static_cast<double>(ceil_div(problem.n, static_cast<std::int64_t>(tile_outputs(config))));
  TensorTiles of;
  of.count = static_cast<std::int64_t>(std::ceil(active_experts(problem) * rows.count * column_tiles));
  of.steps = weights::k_steps(static_cast<u32>(problem.k));
  of.products = weights::slot_products;
  of.product_operations = 2.0 * weights::tile_rows * rows.columns * weights::product_k;
  of.operand_bytes = (weights::tile_rows + loaded) * weights::product_row_bytes;
  of.l2_bytes = static_cast<double>(weights::weight_block_bytes) + weights::weight_scale_bytes +
                token_scale_bytes(config) + loaded * weights::slot_row_bytes;
  of.tensor_memory_bytes = bytes_of_sum * weights::tile_rows * rows.columns;
  of.epilogue = grouped_epilogue(problem, block_outputs(config) * rows.columns);
  return of;
}

}  // namespace

WorkModel work(const GroupedProblem& problem, const Config& config) {
  const auto k = static_cast<double>(problem.k);
  WorkModel work;
  work.parts.emplace_back(
      MemoryPass{"preparing the rows", 2 * usual_rows(problem) * k * dual_gemm::stored_bits(problem.a) / 8, true});
  TensorKernel kernel;
  kernel.tiles = {tiles(problem, config)};
  kernel.pairs = config.blocks == 2;
  kernel.cluster = config.blocks;
  kernel.loads_in_flight = std::max(1.0, config.stages - 1.5);
  kernel.persistent = true;
  kernel.dram_bytes = compulsory_bytes(problem);
  const TensorTiles& of = kernel.tiles.front();
  const double computed =
      static_cast<double>(of.count) * config.blocks * of.steps * of.products * of.product_operations;
  const double useful = 2.0 * usual_rows(problem) * config.matrices * static_cast<double>(problem.n) * k;
  kernel.useful_share = std::min(1.0, useful / computed);
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05
