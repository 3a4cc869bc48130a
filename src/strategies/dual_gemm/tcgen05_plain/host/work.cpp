#include "strategies/dual_gemm/tcgen05_plain/host/work.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {
namespace {

constexpr double matrices = 2;
constexpr double bytes_of_sum = 4;

double sum_bytes(const Config& config) { return matrices * bytes_of_sum * block_outputs * config.block_tokens; }

TensorTiles tiles(const ProductProblem& problem, const Config& config) {
  const double tokens = config.block_tokens;
  TensorTiles of;
  of.count = ceil_div(problem.rows, config.block_tokens) *
             ceil_div(problem.n, static_cast<std::int64_t>(tile_outputs(config)));
  of.steps = static_cast<double>(ceil_div(ceil_div(problem.k, slot_k(config)), config.split_k));
  of.products = matrices * slot_products;
  of.product_operations = 2.0 * block_outputs * tokens * product_k(config);
  of.operand_bytes = static_cast<double>(block_outputs + loaded_tokens(config)) * product_row_bytes;
  of.l2_bytes = slot_bytes(config);
  of.tensor_memory_bytes = sum_bytes(config);
  of.epilogue = epilogue_work(problem, block_outputs * tokens / config.split_k);
  return of;
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  TensorKernel kernel;
  kernel.tiles = {tiles(problem, config)};
  kernel.matrix_type = config.operand == Number::e4m3 ? MatrixType::fp8 : MatrixType::bits16;
  kernel.pairs = config.blocks == 2;
  kernel.cluster = pipeline::cluster_blocks(shape_of(config));
  kernel.loads_in_flight = std::max(1.0, config.stages - 1.5);
  kernel.exchange_clocks = exchange_clocks(sum_bytes(config), config.split_k);
  kernel.persistent = config.persistent;
  kernel.dram_bytes = compulsory_bytes(problem);
  const double computed = static_cast<double>(kernel.tiles.front().count) * tile_outputs(config) * config.block_tokens *
                          slot_k(config) * static_cast<double>(ceil_div(problem.k, slot_k(config)));
  kernel.useful_share = static_cast<double>(problem.rows * problem.n) * static_cast<double>(problem.k) / computed;
  WorkModel work;
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
