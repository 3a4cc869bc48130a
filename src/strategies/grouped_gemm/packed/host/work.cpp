#include "strategies/grouped_gemm/packed/host/work.hpp"

#include "strategies/gemm/work.hpp"

namespace thresher::strategies::grouped_gemm::packed {
namespace {

/// Of the tokens that a usual call brings.
double brought_tokens(const ProductProblem& problem) {
  return problem.layout == ProductRows::gathered ? static_cast<double>(problem.tokens)
         : problem.layout == ProductRows::masked
             ? static_cast<double>(problem.experts) * static_cast<double>(problem.rows)
             : usual_rows(problem);
}

/// Of exact numerics, measured on an H200 with many rows an expert
/// (measurements/grouped_variants_nvfp4_exact_h200_2026-11-23.txt): warpgroups that convert wait for each other. 0: not
/// measured.
double exact_share(const Config& config) {
  if (config.block_tokens > 128) {
    return 0.65;
  }
  if (config.block_tokens > 64) {
    return config.math_warpgroups > 2 ? 0.75 : 0.70;
  }
  return config.block_tokens == 64 ? 0.54 : config.block_tokens == 32 ? 0.36 : 0;
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  const bool is_fast = config.numerics == Numerics::fast;
  const auto k = static_cast<double>(problem.k);
  const double prepared_bits = is_fast ? 8 : 16;
  WorkModel work;
  if (is_fast || problem.a == Format::nvfp4) {
    work.parts.emplace_back(
        MemoryPass{is_fast ? "folding the tokens" : "widening the tokens",
                   brought_tokens(problem) * k * (dual_gemm::stored_bits(problem.a) + prepared_bits) / 8, true});
  }
  if (config.gathered) {
    work.parts.emplace_back(MemoryPass{"gathering the rows", usual_rows(problem) * k * 2 * prepared_bits / 8, true});
  }
  work.parts.emplace_back(
      grouped_kernel(problem, {.weight_rows = config.math_warpgroups * 64,
                               .outputs = tile_outputs(config),
                               .tile_widths = tile_widths_of(config),
                               .k = config.blocks_per_slot * static_cast<int>(weight_block_k(config.numerics)),
                               .type = is_fast ? MatrixType::fp8 : MatrixType::bits16,
                               .matrix_share = is_fast ? 0 : exact_share(config),
                               .converts_weights = true,
                               .converts_in_turns = config.blocks_resident > 1 || is_fast,
                               .stages = config.stages,
                               .blocks_per_multiprocessor = config.blocks_resident,
                               .dependent_launch = config.dependent_launch}));
  return work;
}

}  // namespace thresher::strategies::grouped_gemm::packed
