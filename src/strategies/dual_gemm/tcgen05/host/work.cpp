#include "strategies/dual_gemm/tcgen05/host/work.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

constexpr double bytes_of_sum = 4;

double sum_bytes(const Config& config) { return bytes_of_sum * tile_rows * config.block_tokens; }

/// Tokens whose scales are known to have no sign are read where they lie where their blocks fit the tiles.
bool prepares(const ProductProblem& problem, const Config& config) {
  return !config.unsigned_scales || !blocked_scales_fit(static_cast<u32>(problem.rows), static_cast<u32>(problem.k),
                                                        static_cast<u32>(config.block_tokens));
}

MemoryPass preparation(const ProductProblem& problem) {
  const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.k);
  return {"preparing the tokens", 2 * elements * stored_bits(problem.a) / 8, true};
}

}  // namespace

TensorTiles tiles(const ProductProblem& problem, const Config& config, std::int64_t count) {
  TensorTiles of;
  of.count = count;
  of.steps =
      static_cast<double>(ceil_div(static_cast<std::int64_t>(k_steps(static_cast<u32>(problem.k))), config.split_k));
  of.products = slot_products;
  of.product_operations = 2.0 * tile_rows * config.block_tokens * product_k;
  of.operand_bytes = (tile_rows + loaded_tokens(config)) * static_cast<double>(product_row_bytes);
  of.l2_bytes = slot_bytes(config);
  of.tensor_memory_bytes = sum_bytes(config);
  of.epilogue = epilogue_work(problem, static_cast<double>(tile_rows_outputs) * config.block_tokens / config.split_k);
  return of;
}

WorkModel work(const ProductProblem& problem, const Config& config) {
  WorkModel work;
  if (prepares(problem, config)) {
    work.parts.emplace_back(preparation(problem));
  }
  const std::int64_t count = ceil_div(problem.rows, config.block_tokens) *
                             ceil_div(problem.n, static_cast<std::int64_t>(tile_outputs(config)));
  TensorKernel kernel;
  kernel.tiles = {tiles(problem, config, count)};
  kernel.pairs = config.blocks == 2;
  kernel.cluster = pipeline::cluster_blocks(shape_of(config));
  kernel.loads_in_flight = std::max(1.0, config.stages - 1.5);
  kernel.exchange_clocks = exchange_clocks(sum_bytes(config), config.split_k);
  kernel.persistent = config.persistent;
  kernel.dram_bytes = compulsory_bytes(problem);
  const double computed = static_cast<double>(count) * tile_outputs(config) * config.block_tokens * slot_k *
                          k_steps(static_cast<u32>(problem.k));
  kernel.useful_share = static_cast<double>(problem.rows * problem.n) * static_cast<double>(problem.k) / computed;
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
