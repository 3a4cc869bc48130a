#include "strategies/grouped_gemm/tcgen05_plain/host/work.hpp"

#include "core/integers.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {
namespace {

constexpr double bytes_of_sum = 4;

TensorTiles tile(const ProductProblem& problem, const Config& config, double columns) {
  const double loaded = columns / config.blocks;
  TensorTiles of;
  of.steps = static_cast<double>(ceil_div(problem.k, static_cast<std::int64_t>(slot_k(config))));
  of.products = config.matrices * static_cast<double>(slot_products);
  of.product_operations = 2.0 * block_outputs * columns * product_k(config);
  of.operand_bytes = (block_outputs + loaded) * product_row_bytes;
  of.l2_bytes = weight_bytes(config) + loaded * slot_row_bytes;
  of.tensor_memory_bytes = config.matrices * bytes_of_sum * block_outputs * columns;
  of.epilogue = epilogue_work(problem, block_outputs * columns);
  return of;
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  WorkModel work;
  if (config.gathered) {
    const double read_and_written_bytes = 2.0 * element_bytes(config.operand);
    work.parts.emplace_back(MemoryPass{
        "gathering the rows", usual_rows(problem) * static_cast<double>(problem.k) * read_and_written_bytes, true});
  }
  const RowTiles rows = usual_row_tiles(problem, tile_widths_of(config));
  TensorKernel kernel = grouped_tensor_kernel(problem,
                                              {.tile_widths = tile_widths_of(config),
                                               .outputs = tile_outputs(config),
                                               .blocks = config.blocks,
                                               .stages = config.stages,
                                               .split_k = config.split_k,
                                               .type = matrix_type(config.operand)},
                                              tile(problem, config, rows.columns));
  kernel.dram_bytes += bytes_read_again(problem, rows);
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
