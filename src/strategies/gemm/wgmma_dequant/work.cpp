#include "strategies/gemm/work.hpp"
#include "strategies/gemm/wgmma_dequant/plan.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

/// The tokens that a usual call brings.
double usual_tokens(const ProductProblem& problem) {
  return problem.layout == ProductRows::gathered ? static_cast<double>(problem.tokens)
         : problem.layout == ProductRows::masked
             ? static_cast<double>(problem.experts) * static_cast<double>(problem.rows)
             : usual_rows(problem);
}

const char* title(Preparation kind) {
  return kind == Preparation::quantize     ? "quantizing the tokens"
         : kind == Preparation::dequantize ? "dequantizing the tokens"
                                           : "padding the tokens";
}

int prepared_bits(const Config& config) { return config.numerics == Numerics::fast ? 8 : 16; }

/// The share of the tensor cores' rate that was measured on an H200 in the loop for 128 tokens or more, from the first
/// stage to the last (docs/kernels/nvfp4.md). `fast` makes as many fragments in half the time, and with few tokens for
/// each of them it waits for that.
double dense_share(const Config& config) {
  const bool is_wide = config.block_tokens == 256;
  if (config.numerics == Numerics::fast) {
    return is_wide ? 0.858 : config.math_warpgroups == 3 ? 0.753 : 0.734;
  }
  return is_wide || config.math_warpgroups == 3 ? 0.973 : 0.925;
}

/// Measured too: from the last product to the end, and how much longer a pair of blocks takes to add up its halves.
constexpr double epilogue_clocks = 830;
double merge_clocks(Numerics numerics) { return numerics == Numerics::fast ? 4065 : 3373; }

/// The share of exact numerics, measured on an H200 with many rows an expert
/// (measurements/grouped_variants_nvfp4_exact_h200_2026-11-23.txt): warpgroups that dequantize wait for each other. 0:
/// not measured.
double grouped_share(const Config& config) {
  if (config.numerics == Numerics::fast) {
    return 0;
  }
  if (config.block_tokens > 128) {
    return 0.65;
  }
  if (config.block_tokens > 64) {
    return config.math_warpgroups > 2 ? 0.75 : 0.70;
  }
  return config.block_tokens == 64 ? 0.54 : config.block_tokens == 32 ? 0.36 : 0;
}

TiledKernel dense_product(ProductProblem problem, const Config& config) {
  problem.a = problem.a == Format::nvfp4 ? Format::fp16 : problem.a;
  const bool shares = config.blocks_resident > 1;
  TiledKernel kernel =
      tiled_kernel(problem, {.weight_rows = 2 * tile_outputs(config),
                             .slot_weight_rows = 2 * tile_outputs(config),
                             .tokens = config.block_tokens,
                             .k = static_cast<int>(stage_k(config)),
                             .weights_are_rows = true,
                             .type = config.numerics == Numerics::fast ? MatrixType::fp8 : MatrixType::bits16,
                             .converts_weights = true,
                             .converts_in_turns = shares || config.numerics == Numerics::fast,
                             .stages = config.stages,
                             .cluster = config.split_k,
                             .split_k = config.split_k,
                             .blocks_per_multiprocessor = config.blocks_resident,
                             .dependent_launch = config.dependent_launch});
  if (config.block_tokens >= 128 && !shares) {
    kernel.step.matrix_share = dense_share(config);
    kernel.epilogue.clocks = epilogue_clocks;
    kernel.exchange_clocks = config.split_k > 1 ? merge_clocks(config.numerics) : 0;
    kernel.hides_exchanges = false;
  }
  return kernel;
}

TiledKernel grouped_product(const ProductProblem& problem, const Config& config) {
  const bool is_fast = config.numerics == Numerics::fast;
  return grouped_kernel(problem, {.weight_rows = config.math_warpgroups * 64,
                                  .outputs = tile_outputs(config),
                                  .tile_widths = tile_widths_of(config),
                                  .k = static_cast<int>(stage_k(config)),
                                  .type = is_fast ? MatrixType::fp8 : MatrixType::bits16,
                                  .matrix_share = grouped_share(config),
                                  .converts_weights = true,
                                  .converts_in_turns = config.blocks_resident > 1 || is_fast,
                                  .stages = config.stages,
                                  .blocks_per_multiprocessor = config.blocks_resident,
                                  .dependent_launch = config.dependent_launch});
}

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  const auto k = static_cast<double>(problem.k);
  const Preparation kind = preparation(config, problem.a, problem.k);
  WorkModel work;
  if (kind != Preparation::none) {
    const double bits = stored_bits(problem.a) + prepared_bits(config);
    work.parts.emplace_back(MemoryPass{title(kind), usual_tokens(problem) * k * bits / 8, true});
  }
  if (config.gathered) {
    const double bits = 2.0 * prepared_bits(config);
    work.parts.emplace_back(MemoryPass{"gathering the rows", usual_rows(problem) * k * bits / 8, true});
  }
  work.parts.emplace_back(config.grouped ? grouped_product(problem, config) : dense_product(problem, config));
  return work;
}

}  // namespace thresher::strategies::gemm::wgmma_dequant
