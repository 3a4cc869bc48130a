#include "strategies/grouped_gemm/host/work.hpp"

#include <algorithm>
#include <cmath>

#include "core/integers.hpp"
#include "strategies/dual_gemm/host/tile_work.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

using dual_gemm::stored_bits;

constexpr double block_elements = 64.0 * 64.0;
/// Instructions a warp issues for a 64×64 block of weights that needs no conversion.
constexpr double plain_instructions = 10;
constexpr double epilogue_instructions = 14;  ///< for an output, its store not counted
constexpr double specials_per_output = 2;     ///< of an activation: an exponential and a reciprocal
constexpr double lanes = 128;                 ///< of the four schedulers
/// Of the weights that another tile of an expert's tokens reads again, what L2 no longer holds: assumed. Without it a
/// tile that reads weights once ties with one that reads them twice.
constexpr double read_again_share = 0.3;

int matrices(const ProductProblem& problem) { return problem.activation ? 2 : 1; }

RowTiles row_tiles(std::uint32_t rows, pipeline::TileWidths tile_widths) {
  const std::uint32_t count = (rows + tile_widths.most - 1) / tile_widths.most;
  const std::uint32_t each = pipeline::rows_of_tiles(rows, count, tile_widths);
  const std::uint32_t last = pipeline::tile_width_for(rows - (count - 1) * each, tile_widths);
  return {static_cast<double>(count), static_cast<double>((count - 1) * each + last) / count};
}

/// Of experts that have so many on average: as many have that, a deviation more and a deviation less, when each row's
/// expert is drawn. A tile that just holds the average is too short for every second of them.
RowTiles tiles_of_rows(double rows, pipeline::TileWidths tile_widths) {
  const double deviation = std::sqrt(1.5 * rows);  // three equal shares, of variance `rows`
  RowTiles sum;
  for (const double some : {rows - deviation, rows, rows + deviation}) {
    const RowTiles tiles = row_tiles(static_cast<std::uint32_t>(std::max(1.0, std::round(some))), tile_widths);
    sum.count += tiles.count;
    sum.columns += tiles.count * tiles.columns;
  }
  return {sum.count / 3, sum.columns / sum.count};
}

}  // namespace

double usual_rows(const ProductProblem& problem) noexcept {
  const std::int64_t slots = problem.layout == ProductRows::masked ? problem.experts : 1;
  const std::int64_t most = size_product(slots, problem.rows);
  return static_cast<double>(
      std::max<std::int64_t>(1, problem.expected_rows > 0 ? std::min(problem.expected_rows, most) : most));
}

double active_experts(const ProductProblem& problem) noexcept {
  const auto experts = static_cast<double>(problem.experts);
  return std::max(1.0, experts * (1 - std::pow(1 - 1 / experts, usual_rows(problem))));
}

namespace {

/// Of the experts that have rows.
double weight_bytes(const ProductProblem& problem) noexcept {
  return active_experts(problem) * matrices(problem) * static_cast<double>(problem.n) * static_cast<double>(problem.k) *
         stored_bits(problem.b, OperandRole::weights) / 8;
}

}  // namespace

double compulsory_bytes(const ProductProblem& problem) noexcept {
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double rows = usual_rows(problem);
  const double of_a =
      problem.layout == ProductRows::gathered ? std::min(rows, static_cast<double>(problem.tokens)) : rows;
  return weight_bytes(problem) + of_a * k * stored_bits(problem.a) / 8 + rows * n * stored_bits(problem.out) / 8;
}

RowTiles usual_row_tiles(const ProductProblem& problem, pipeline::TileWidths tile_widths) {
  if (problem.experts == 1) {
    return row_tiles(static_cast<std::uint32_t>(usual_rows(problem)), tile_widths);
  }
  return tiles_of_rows(usual_rows(problem) / active_experts(problem), tile_widths);
}

double bytes_read_again(const ProductProblem& problem, const RowTiles& rows) noexcept {
  return read_again_share * (rows.count - 1) * weight_bytes(problem);
}

EpilogueWork grouped_epilogue(const ProductProblem& problem, double outputs) {
  return {.instructions = outputs * epilogue_instructions / lanes,
          .specials = problem.activation ? outputs * specials_per_output : 0,
          .store_bytes = outputs * bits(problem.out) / 8};
}

TensorKernel grouped_tensor_kernel(const ProductProblem& problem, const GroupedTensorTile& tile, TensorTiles of) {
  const RowTiles rows = usual_row_tiles(problem, tile.tile_widths);
  const auto column_tiles = static_cast<double>(ceil_div(problem.n, tile.outputs));
  of.count = static_cast<std::int64_t>(std::ceil(active_experts(problem) * rows.count * column_tiles));
  const double computed = static_cast<double>(of.count) * tile.blocks * of.steps * of.products * of.product_operations;
  const double useful =
      2.0 * usual_rows(problem) * matrices(problem) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  TensorKernel kernel;
  kernel.exchange_clocks = dual_gemm::exchange_clocks(of.tensor_memory_bytes, tile.split_k);
  of.steps = std::ceil(of.steps / tile.split_k);
  of.epilogue.instructions /= tile.split_k;
  of.epilogue.specials /= tile.split_k;
  of.epilogue.store_bytes /= tile.split_k;
  kernel.tiles = {of};
  kernel.matrix_type = tile.type;
  kernel.pairs = tile.blocks == 2;
  kernel.cluster = tile.blocks * tile.split_k;
  kernel.loads_in_flight = std::max(1.0, tile.stages - 1.5);
  kernel.persistent = true;
  kernel.dram_bytes = compulsory_bytes(problem);
  kernel.useful_share = std::min(1.0, useful / computed);
  return kernel;
}

TiledKernel grouped_kernel(const ProductProblem& problem, const GroupedTile& tile) {
  const double active = active_experts(problem);
  const RowTiles rows = usual_row_tiles(problem, tile.tile_widths);
  const auto column_tiles = static_cast<double>(ceil_div(problem.n, tile.outputs));
  const auto k_steps = static_cast<double>(ceil_div(problem.k, tile.k));
  const double element_bytes = stored_bits(tile.type) / 8;
  const double weights =
      tile.weight_rows * static_cast<double>(tile.k) * stored_bits(problem.b, OperandRole::weights) / 8;
  const double tokens = rows.columns * tile.k * element_bytes;
  const double weight_blocks = tile.weight_rows * tile.k / block_elements;
  const double outputs = tile.outputs * rows.columns;
  TiledKernel kernel;
  kernel.step.matrix_type = tile.type;
  kernel.step.matrix_share = tile.matrix_share;
  kernel.step.matrix_operations = 2.0 * tile.weight_rows * rows.columns * tile.k;
  kernel.step.shared_bytes = weights + tokens + (tile.converts_weights ? weights : 0);
  // Each 64 rows of the instruction read all of its columns.
  const double read_rows = tile.tokens_are_rows ? rows.columns : tile.weight_rows;
  const double read_columns = tile.tokens_are_rows ? tile.weight_rows : rows.columns;
  kernel.step.shared_read_bytes =
      (read_rows / 64 * read_columns + (tile.converts_weights ? 0 : read_rows)) * tile.k * element_bytes;
  kernel.step.instructions = tile.converts_weights ? 0 : weight_blocks * plain_instructions;
  kernel.step.converted_blocks = tile.converts_weights ? weight_blocks : 0;
  kernel.step.l2_bytes = weights + tokens;
  kernel.epilogue = grouped_epilogue(problem, outputs);
  kernel.epilogue.is_hidden = tile.hides_epilogue;
  kernel.blocks = static_cast<std::int64_t>(std::ceil(active * rows.count * column_tiles));
  kernel.blocks_per_multiprocessor = tile.blocks_per_multiprocessor;
  kernel.steps = k_steps;
  // A slot is given back a step late, and one is always being read.
  kernel.loads_in_flight = std::max(1.0, tile.stages - 1.5);
  kernel.converts_in_turns = tile.converts_in_turns;
  kernel.stages = tile.stages;
  kernel.persistent = true;
  kernel.dependent_launch = tile.dependent_launch;
  kernel.dram_bytes = compulsory_bytes(problem) + bytes_read_again(problem, rows);
  kernel.useful_share = 2.0 * usual_rows(problem) * matrices(problem) * static_cast<double>(problem.n) *
                        static_cast<double>(problem.k) /
                        (static_cast<double>(kernel.blocks) * k_steps * kernel.step.matrix_operations);
  return kernel;
}

}  // namespace thresher::strategies::grouped_gemm
