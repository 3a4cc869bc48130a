#include "strategies/gemm/work.hpp"

#include <algorithm>
#include <cmath>

#include "core/integers.hpp"

namespace thresher::strategies::gemm {
namespace {

constexpr double block_elements = 64.0 * 64.0;
/// Instructions a warp issues for a 64×64 block of weights that needs no conversion.
constexpr double plain_instructions = 10;
constexpr double epilogue_instructions = 14;  ///< for an output, its store not counted
constexpr double specials_per_output = 2;     ///< of an activation: an exponential and a reciprocal
constexpr double lanes = 128;                 ///< of the four schedulers
constexpr double sum_bytes = 4;
constexpr int instruction_rows = 64;  ///< of wgmma
/// Accumulators that a block of a cluster sends to another, as measured.
constexpr double exchange_bytes_per_clock = 14;
/// The assumed share of the weights read again by another tile of an expert's tokens that L2 no longer holds. Without
/// it a tile that reads weights once ties with one that reads them twice.
constexpr double read_again_share = 0.3;

double weight_bytes(const ProductProblem& problem) {
  return active_experts(problem) * problem.matrices() * static_cast<double>(problem.n) *
         static_cast<double>(problem.k) * stored_bits(problem.b, OperandRole::weights) / 8;
}

/// One step along K, as the tensor cores take it.
struct Step {
  double weight_rows = 0;
  double tokens = 0;
  double k = 0;
  MatrixType type = MatrixType::bits16;
  double rows = 0;  ///< as the unit executes them
  double columns = 0;
  bool converts_weights = false;
  bool rows_in_registers = false;
  double sharers = 1;  ///< blocks of a cluster that have the larger of their two operands in common
};

StepWork step_work(const ProductProblem& problem, const Step& step) {
  const double element_bytes = stored_bits(step.type) / 8;
  const double weights = step.weight_rows * step.k * stored_bits(problem.b, OperandRole::weights) / 8;
  const double tokens = step.tokens * step.k * element_bytes;
  const double weight_blocks = step.weight_rows * step.k / block_elements;
  StepWork work;
  work.matrix_type = step.type;
  work.matrix_operations = 2.0 * step.rows * step.columns * step.k;
  work.shared_bytes =
      weights + tokens + (step.converts_weights ? weights : 0) +
      (step.converts_weights && !step.rows_in_registers ? step.weight_rows * step.k * element_bytes : 0);
  // Each granule of the instruction's rows reads all of its columns.
  work.shared_read_bytes =
      (step.rows / instruction_rows * step.columns + (step.rows_in_registers ? 0 : step.rows)) * step.k * element_bytes;
  work.instructions = step.converts_weights ? 0 : weight_blocks * plain_instructions;
  work.converted_blocks = step.converts_weights ? weight_blocks : 0;
  work.l2_bytes = std::min(weights, tokens) + std::max(weights, tokens) / step.sharers;
  return work;
}

/// The common part of kernels with static tiles and with tiles of groups, which finish `outputs` of a tile.
TiledKernel kernel_of(const ProductProblem& problem, const TileWork& tile, double outputs) {
  TiledKernel kernel;
  kernel.epilogue = epilogue_work(problem, outputs);
  kernel.epilogue.tma_stores = tile.tma_stores;
  kernel.epilogue.is_hidden = tile.hides_epilogue;
  kernel.blocks_per_multiprocessor = tile.blocks_per_multiprocessor;
  kernel.loads_in_flight = loads_in_flight(tile.stages);
  kernel.converts_in_turns = tile.converts_in_turns;
  kernel.stages = tile.stages;
  kernel.dependent_launch = tile.dependent_launch;
  kernel.persistent = tile.persistent;
  kernel.streams_weights = true;
  kernel.end_clocks = tile.end_clocks;
  kernel.dram_share = tile.dram_share;
  return kernel;
}

RowTiles row_tiles(std::uint32_t rows, pipeline::TileWidths tile_widths) {
  const std::uint32_t count = pipeline::row_tiles_of(rows, tile_widths.most);
  const std::uint32_t each = pipeline::rows_of_tiles(rows, count, tile_widths);
  const std::uint32_t last = pipeline::tile_width_for(rows - (count - 1) * each, tile_widths);
  return {static_cast<double>(count), static_cast<double>((count - 1) * each + last) / count};
}

/// Returns the tiles of experts that have `rows` rows on average, when each row's expert is drawn. Equal shares of the
/// experts have the average, a deviation more and a deviation less. A tile that just holds the average is too short for
/// every second of them.
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

double stored_bits(Format format, OperandRole role) noexcept { return format_traits(format).stored_bits(role); }

double stored_bits(MatrixType type) noexcept {
  return type == MatrixType::bits16 ? 16 : type == MatrixType::fp8 ? 8 : 4.5;
}

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

double most_active_experts(const ProductProblem& problem) noexcept {
  return std::min(static_cast<double>(problem.experts), usual_rows(problem));
}

double compulsory_bytes(const ProductProblem& problem) noexcept {
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double rows = usual_rows(problem);
  const double a_rows =
      problem.layout == ProductRows::gathered ? std::min(rows, static_cast<double>(problem.tokens)) : rows;
  return weight_bytes(problem) + a_rows * k * stored_bits(problem.a) / 8 + rows * n * stored_bits(problem.out) / 8;
}

EpilogueWork epilogue_work(const ProductProblem& problem, double outputs) noexcept {
  return {.instructions = outputs * epilogue_instructions / lanes,
          .specials = problem.matrices() == 2 ? outputs * specials_per_output : 0,
          .store_bytes = outputs * thresher::bits(problem.out) / 8};
}

double exchange_clocks(double accumulator_bytes, int blocks) noexcept {
  return accumulator_bytes * (blocks - 1) / blocks / exchange_bytes_per_clock;
}

double useful_operations(const ProductProblem& problem) noexcept {
  return 2.0 * usual_rows(problem) * problem.matrices() * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

double loads_in_flight(int stages) noexcept { return std::max(1.0, stages - 1.5); }

TiledKernel tiled_kernel(const ProductProblem& problem, const TileWork& tile) {
  const std::int64_t tiles =
      ceil_div(problem.rows, tile.tokens) * ceil_div(problem.matrices() * problem.n, tile.weight_rows);
  const std::int64_t k_steps = ceil_div(problem.k, tile.k);
  const int rows =
      static_cast<int>(round_up(tile.weights_are_rows ? tile.slot_weight_rows : tile.tokens, instruction_rows));
  const int columns = tile.weights_are_rows ? tile.tokens : tile.slot_weight_rows;
  TiledKernel kernel =
      kernel_of(problem, tile, static_cast<double>(tile.weight_rows) / problem.matrices() * tile.tokens / tile.split_k);
  kernel.step = step_work(problem, {.weight_rows = static_cast<double>(tile.slot_weight_rows),
                                    .tokens = static_cast<double>(tile.tokens),
                                    .k = static_cast<double>(tile.k),
                                    .type = tile.type,
                                    .rows = static_cast<double>(rows),
                                    .columns = static_cast<double>(columns),
                                    .converts_weights = tile.converts_weights,
                                    .rows_in_registers = tile.converts_weights && tile.weights_are_rows,
                                    .sharers = static_cast<double>(tile.cluster) / tile.split_k});
  kernel.blocks = round_up(tiles * tile.split_k, tile.cluster);
  kernel.cluster = tile.cluster;
  kernel.steps = static_cast<double>(ceil_div(k_steps, tile.split_k) * tile.walks);
  kernel.exchange_clocks = exchange_clocks(sum_bytes * tile.weight_rows * tile.tokens, tile.split_k);
  kernel.hides_exchanges = true;
  kernel.dram_bytes = compulsory_bytes(problem);
  const double computed =
      static_cast<double>(tiles) * rows * columns * tile.walks * static_cast<double>(k_steps * tile.k);
  kernel.useful_share = problem.matrices() * static_cast<double>(problem.rows * problem.n * problem.k) / computed;
  return kernel;
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

TiledKernel grouped_kernel(const ProductProblem& problem, const TileWork& tile) {
  const RowTiles rows = usual_row_tiles(problem, tile.tile_widths);
  const auto column_tiles = static_cast<double>(ceil_div(problem.n, tile.outputs));
  const auto k_steps = static_cast<double>(ceil_div(problem.k, tile.k));
  TiledKernel kernel = kernel_of(problem, tile, tile.outputs * rows.columns / tile.split_k);
  kernel.step = step_work(problem, {.weight_rows = static_cast<double>(tile.weight_rows),
                                    .tokens = rows.columns,
                                    .k = static_cast<double>(tile.k),
                                    .type = tile.type,
                                    .rows = tile.weights_are_rows ? tile.weight_rows : rows.columns,
                                    .columns = tile.weights_are_rows ? rows.columns : tile.weight_rows,
                                    .converts_weights = tile.converts_weights,
                                    .rows_in_registers = tile.converts_weights});
  kernel.step.matrix_share = tile.matrix_share;
  // Clusters without a place would take another round.
  const double experts = tile.split_k == 1 ? active_experts(problem) : most_active_experts(problem);
  const auto tiles = static_cast<std::int64_t>(std::ceil(experts * rows.count * column_tiles));
  kernel.blocks = tiles * tile.split_k;
  kernel.cluster = tile.split_k;
  kernel.steps = std::ceil(k_steps / tile.split_k);
  kernel.exchange_clocks = exchange_clocks(sum_bytes * tile.weight_rows * rows.columns, tile.split_k);
  kernel.hides_exchanges = true;
  kernel.dram_bytes = compulsory_bytes(problem) + bytes_read_again(problem, rows);
  kernel.useful_share =
      useful_operations(problem) / (static_cast<double>(tiles) * k_steps * kernel.step.matrix_operations);
  return kernel;
}

}  // namespace thresher::strategies::gemm
