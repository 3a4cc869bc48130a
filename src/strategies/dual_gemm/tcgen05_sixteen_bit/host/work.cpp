#include "strategies/dual_gemm/tcgen05_sixteen_bit/host/work.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/dual_gemm/host/tile_work.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {
namespace {

constexpr double matrices = 2;
constexpr double bytes_of_sum = 4;

TensorTiles tiles(const DualGemmProblem& problem, const Config& config) {
  const double tokens = config.block_tokens;
  TensorTiles of;
  of.count =
      ceil_div(problem.m, config.block_tokens) * ceil_div(problem.n, static_cast<std::int64_t>(tile_outputs(config)));
  of.steps = static_cast<double>(ceil_div(problem.k, slot_k));
  of.products = matrices * slot_products;
  of.product_operations = 2.0 * block_outputs * tokens * product_k;
  of.operand_bytes = static_cast<double>(block_outputs + loaded_tokens(config)) * product_row_bytes;
  of.l2_bytes = slot_bytes(config);
  of.tensor_memory_bytes = matrices * bytes_of_sum * block_outputs * tokens;
  of.epilogue = epilogue_work(problem, block_outputs * tokens);
  return of;
}

}  // namespace

WorkModel work(const DualGemmProblem& problem, const Config& config) {
  TensorKernel kernel;
  kernel.tiles = {tiles(problem, config)};
  kernel.matrix_type = MatrixType::bits16;
  kernel.pairs = config.blocks == 2;
  kernel.cluster = config.blocks;
  kernel.loads_in_flight = std::max(1.0, config.stages - 1.5);
  kernel.persistent = config.persistent;
  kernel.dram_bytes = compulsory_bytes(problem);
  const TensorTiles& of = kernel.tiles.front();
  const double computed =
      static_cast<double>(of.count) * tile_outputs(config) * config.block_tokens * slot_k * of.steps;
  kernel.useful_share = static_cast<double>(problem.m * problem.n) * static_cast<double>(problem.k) / computed;
  WorkModel work;
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
