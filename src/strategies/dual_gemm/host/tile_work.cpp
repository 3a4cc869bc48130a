#include "strategies/dual_gemm/host/tile_work.hpp"

#include <algorithm>

#include "core/integers.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

constexpr double block_elements = 64.0 * 64.0;
/// Instructions a warp issues for a 64×64 block of weights that needs no conversion.
constexpr double plain_instructions = 10;
constexpr double epilogue_instructions = 14;  ///< for an output, its store not counted
constexpr double specials_per_output = 2;     ///< an exponential and a reciprocal
constexpr double lanes = 128;                 ///< of the four schedulers
/// Accumulators that a block of a cluster sends to another, as measured.
constexpr double exchange_bytes_per_clock = 14;

struct MatrixShape {
  int rows;  ///< as the unit executes them
  int columns;
};

MatrixShape matrix_shape(const TileWork& tile) {
  const int rows = tile.weights_are_rows ? tile.slot_weight_rows : tile.tokens;
  return {static_cast<int>(round_up(rows, tile.row_granule)),
          tile.weights_are_rows ? tile.tokens : tile.slot_weight_rows};
}

/// Neighbours in a cluster have the larger of their two operands in common.
double l2_bytes(const TileWork& tile, double weights, double tokens) {
  const double sharers = static_cast<double>(tile.cluster) / tile.split_k;
  return std::min(weights, tokens) + std::max(weights, tokens) / sharers;
}

StepWork step_of(const ProductProblem& problem, const TileWork& tile) {
  const MatrixShape shape = matrix_shape(tile);
  const double k = tile.k;
  const double element_bytes = stored_bits(tile.type) / 8;
  const double weights = tile.slot_weight_rows * k * stored_bits(problem.b, OperandRole::weights) / 8;
  const double tokens = tile.tokens * k * element_bytes;
  const bool rows_in_registers = tile.converts_weights && tile.weights_are_rows;
  const double weight_blocks = tile.slot_weight_rows * k / block_elements;
  StepWork step;
  step.matrix_type = tile.type;
  step.matrix_operations = 2.0 * shape.rows * shape.columns * k;
  step.shared_bytes = weights + tokens + (tile.converts_weights ? weights : 0) +
                      (tile.converts_weights && !rows_in_registers ? tile.slot_weight_rows * k * element_bytes : 0);
  const double row_blocks = static_cast<double>(shape.rows) / tile.row_granule;
  step.shared_read_bytes =
      (row_blocks * shape.columns + (rows_in_registers ? 0.0 : static_cast<double>(shape.rows))) * k * element_bytes;
  step.instructions = tile.converts_weights ? 0 : weight_blocks * plain_instructions;
  step.converted_blocks = tile.converts_weights ? weight_blocks : 0;
  step.l2_bytes = l2_bytes(tile, weights, tokens);
  return step;
}

EpilogueWork epilogue_of(const ProductProblem& problem, const TileWork& tile) {
  EpilogueWork work = epilogue_work(problem, tile.weight_rows / 2.0 * tile.tokens / tile.split_k);
  work.tma_stores = tile.tma_stores;
  work.is_hidden = tile.hides_epilogue;
  return work;
}

}  // namespace

double stored_bits(Format format, OperandRole role) noexcept { return format_traits(format).stored_bits(role); }

double stored_bits(MatrixType type) noexcept {
  return type == MatrixType::bits16 ? 16 : type == MatrixType::fp8 ? 8 : 4.5;
}

double compulsory_bytes(const ProductProblem& problem) noexcept {
  const double weights =
      2.0 * static_cast<double>(problem.n * problem.k) * stored_bits(problem.b, OperandRole::weights) / 8;
  const double tokens = static_cast<double>(problem.rows * problem.k) * stored_bits(problem.a) / 8;
  const double out = static_cast<double>(problem.rows * problem.n) * bits(problem.out) / 8;
  return weights + tokens + out;
}

EpilogueWork epilogue_work(const ProductProblem& problem, double outputs) noexcept {
  return {.instructions = outputs * epilogue_instructions / lanes,
          .specials = outputs * specials_per_output,
          .store_bytes = outputs * bits(problem.out) / 8};
}

double exchange_clocks(double accumulator_bytes, int blocks) noexcept {
  return accumulator_bytes * (blocks - 1) / blocks / exchange_bytes_per_clock;
}

TiledKernel tiled_kernel(const ProductProblem& problem, const TileWork& tile) {
  const std::int64_t tiles = ceil_div(problem.rows, tile.tokens) * ceil_div(2 * problem.n, tile.weight_rows);
  const std::int64_t k_steps = ceil_div(problem.k, tile.k);
  const MatrixShape shape = matrix_shape(tile);
  TiledKernel kernel;
  kernel.step = step_of(problem, tile);
  kernel.epilogue = epilogue_of(problem, tile);
  kernel.blocks = round_up(tiles * tile.split_k, tile.cluster);
  kernel.cluster = tile.cluster;
  kernel.blocks_per_multiprocessor = tile.blocks_per_multiprocessor;
  kernel.steps = static_cast<double>(ceil_div(k_steps, tile.split_k) * tile.walks);
  // A slot is given back a step late, and one is always being read.
  kernel.loads_in_flight = std::max(1.0, tile.stages - 1.5);
  kernel.converts_in_turns = tile.converts_in_turns;
  kernel.stages = tile.stages;
  kernel.exchange_clocks = exchange_clocks(4.0 * tile.weight_rows * tile.tokens, tile.split_k);
  kernel.hides_exchanges = true;
  kernel.persistent = tile.persistent;
  kernel.dependent_launch = tile.dependent_launch;
  kernel.dram_bytes = compulsory_bytes(problem);
  const double computed =
      static_cast<double>(tiles) * shape.rows * shape.columns * tile.walks * static_cast<double>(k_steps * tile.k);
  kernel.useful_share = 2.0 * static_cast<double>(problem.rows * problem.n * problem.k) / computed;
  return kernel;
}

}  // namespace thresher::strategies::dual_gemm
