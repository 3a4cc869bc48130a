#include "strategies/dual_gemm/packed/host/work.hpp"

#include <optional>

#include "strategies/dual_gemm/packed/launches.hpp"
#include "strategies/gemm/work.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

/// What has to be done to the tokens before they can be multiplied with packed weights.
std::optional<MemoryPass> preparation(const ProductProblem& problem, const Config& config) {
  const Preparation kind = preparation_of(config, problem.a, problem.k);
  if (kind == Preparation::none) {
    return std::nullopt;
  }
  const char* const title = kind == Preparation::fold    ? "folding the tokens"
                            : kind == Preparation::widen ? "widening the tokens"
                                                         : "padding the tokens";
  const int written_bits = kind == Preparation::fold ? 8 : 16;
  const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.k);
  return MemoryPass{title, elements * (stored_bits(problem.a) + written_bits) / 8, true};
}

/// What was measured on an H200 of the loop for 128 tokens or more (docs/kernels/nvfp4.md): of the matrix unit's rate,
/// from the first slot to the last. `fast` makes as many fragments in half the time, and with few tokens for each of
/// them it waits for that.
double matrix_share(const Config& config) {
  const bool is_wide = config.block_tokens == 256;
  if (config.numerics == Numerics::fast) {
    return is_wide ? 0.858 : config.math_warpgroups == 3 ? 0.753 : 0.734;
  }
  return is_wide || config.math_warpgroups == 3 ? 0.973 : 0.925;
}

/// From the last product to the end, and what a pair of blocks takes longer to add up its halves, measured too.
constexpr double epilogue_clocks = 830;
double merge_clocks(Numerics numerics) { return numerics == Numerics::fast ? 4065 : 3373; }

}  // namespace

WorkModel work(const ProductProblem& problem, const Config& config) {
  WorkModel work;
  if (const auto pass = preparation(problem, config)) {
    work.parts.emplace_back(*pass);
  }
  ProductProblem prepared = problem;
  prepared.a = problem.a == Format::nvfp4 ? Format::fp16 : problem.a;
  const bool shares = config.blocks_resident > 1;
  const bool is_measured = config.block_tokens >= 128 && !shares;
  TiledKernel kernel =
      tiled_kernel(prepared, {.weight_rows = 2 * tile_outputs(config),
                              .slot_weight_rows = 2 * tile_outputs(config),
                              .tokens = config.block_tokens,
                              .k = config.blocks_per_slot * static_cast<int>(weight_block_k(config)),
                              .weights_are_rows = true,
                              .type = config.numerics == Numerics::fast ? MatrixType::fp8 : MatrixType::bits16,
                              .converts_weights = true,
                              .converts_in_turns = shares || config.numerics == Numerics::fast,
                              .stages = config.stages,
                              .cluster = config.split_k,
                              .split_k = config.split_k,
                              .blocks_per_multiprocessor = config.blocks_resident,
                              .dependent_launch = config.dependent_launch});
  if (is_measured) {
    kernel.step.matrix_share = matrix_share(config);
    kernel.epilogue.clocks = epilogue_clocks;
    kernel.exchange_clocks = config.split_k > 1 ? merge_clocks(config.numerics) : 0;
    kernel.hides_exchanges = false;
  }
  work.parts.emplace_back(kernel);
  return work;
}

}  // namespace thresher::strategies::dual_gemm::packed
