#include "strategies/grouped_gemm/columns/host/work.hpp"

#include "strategies/grouped_gemm/host/work.hpp"

namespace thresher::strategies::grouped_gemm::columns {
namespace {

/// Measured on an H200 with many rows an expert (measurements/grouped_fp8_variants_h200_2026-11-24.txt.xz): scales of
/// blocks cost a multiplication and a shuffle for each addition.
double promoting_share(const Config& config) {
  if (has_block_scales(scaling_knobs(config))) {
    return config.by_turns ? 0.29 : 0.34;
  }
  return config.by_turns ? 0.47 : 0.64;
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  WorkModel work;
  if (config.gathered) {
    const double read_and_written_bytes = 2.0 * element_bytes(config.operand);
    work.parts.emplace_back(MemoryPass{
        "gathering the rows", usual_rows(problem) * static_cast<double>(problem.k) * read_and_written_bytes, true});
  }
  work.parts.emplace_back(grouped_kernel(problem, {.weight_rows = 2 * weight_box_rows(config),
                                                   .outputs = tile_outputs(config),
                                                   .tile_widths = tile_widths_of(config),
                                                   .k = config.block_k,
                                                   .type = matrix_type(config.operand),
                                                   .matrix_share = promotes(config) ? promoting_share(config) : 0,
                                                   .stages = config.stages,
                                                   .blocks_per_multiprocessor = config.blocks_resident,
                                                   .dependent_launch = config.dependent_launch,
                                                   .hides_epilogue = config.by_turns}));
  return work;
}

}  // namespace thresher::strategies::grouped_gemm::columns
