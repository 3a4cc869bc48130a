// The strategy packed: the problems that it takes, the work of a configuration, and its samples.
#include <fmt/format.h>

#include "core/integers.hpp"
#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/product_config.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/tiles.hpp"
#include "strategies/gemm/work.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {
namespace wgmma_dequant {
namespace {

// --- infeasible configurations

/// The minimum for addresses, packed words, fragments and the epilogue's values, beside the accumulators.
constexpr int other_registers = 32;

/// Whether the stages of groups end behind K as packing pads it.
bool ends_behind(const Config& config, std::int64_t k) {
  const std::uint32_t padded_k = weight_k_blocks(config.numerics, narrow(k)) * weight_block_k(config.numerics);
  return !config.dense && k_steps(config, narrow(k)) * stage_k(config) > padded_k;
}

/// The next K, whole blocks further, whose stages do not.
std::int64_t in_whole_stages(const Config& config, std::int64_t k) {
  while (ends_behind(config, k)) {
    k += weight_block_k(config.numerics);
  }
  return k;
}

/// Whole stages fill K as packing pads it, or with groups end before.
void check_stage(const ProductProblem& problem, const Config& config, InfeasibleReasons& found) {
  const int walked_k = static_cast<int>(stage_k(config)) * stages_at_once(config);
  if (const auto multiple = static_cast<int>(k_block_multiple * block_k); config.dense && multiple % walked_k != 0) {
    found.say("tile: {} along K a stage do not divide the {} to which weights are padded", walked_k, multiple);
  }
  if (ends_behind(config, problem.k)) {
    found.say("tile: stages of {} along K end behind K = {} as weights are padded", walked_k, problem.k);
  }
}

void check_dense(const Config& config, const DeviceSpec& device, InfeasibleReasons& found) {
  const pipeline::Shape shape = shape_of(config);
  if (config.block_tokens % (8 * config.split_k) != 0) {
    found.say("split-K: {} tokens are not a multiple of 8 for each of {} parts", config.block_tokens, config.split_k);
  }
  check_static_memory(shape, device, found);
  check_split(shape, config.block_tokens, config.block_tokens / 2, found);
  check_registers({.shape = shape, .blocks_resident = config.blocks_resident}, device, found);
}

void check_grouped(const ProductProblem& problem, const Config& config, const DeviceSpec& device,
                   InfeasibleReasons& found) {
  if (config.numerics == Numerics::fast && problem.layout == ProductRows::masked && problem.a != Format::nvfp4) {
    found.say("fast: masked tokens of {} are not quantized, contiguous and gathered ones are",
              thresher::name(problem.a));
  }
  check_tiles(problem, shape_of(config), {config.static_tiles, config.least_tokens},
              k_steps(config, narrow(problem.k)) / static_cast<u32>(stages_at_once(config)), found);
  check_split(shape_of(config), config.block_tokens, config.block_tokens / 2, found);
  check_block({.shape = shape_of(config),
               .blocks_resident = config.blocks_resident,
               .experts = problem.experts,
               .registers = config.block_tokens / 2 + other_registers},
              device, found);
}

// --- work

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

/// The share of the tensor cores' rate in the loop for 128 tokens or more, from the first stage to the last. It was
/// measured on an H200 (docs/design/kernels/nvfp4.md). `fast` makes as many fragments in half the time, and with few
/// tokens for each of them it waits for that.
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

/// The share of exact numerics with few rows of one group, a block of each cluster for a part of K
/// (measurements/static_tiles_h200_2026-11-29.txt.xz).
double static_share(int block_tokens) {
  return block_tokens == 64 ? 0.66 : block_tokens == 32 ? 0.43 : block_tokens == 16 ? 0.26 : 0.15;
}

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
  if (config.static_tiles) {
    return static_share(config.block_tokens);
  }
  return config.block_tokens == 64 ? 0.54 : config.block_tokens == 32 ? 0.36 : 0;
}

/// With few rows an expert. Both products of Qwen3-30B-A3B in measurements/whole_layers_h200_2026-11-29.json.xz, and
/// gpt-oss-120b in measurements/grouped_variants_nvfp4_exact_h200_2026-11-23.txt, are within a tenth.
double end_clocks(const Config& config) {
  if (config.numerics == Numerics::fast || config.static_tiles || config.overlap != Overlap::none) {
    return 0;
  }
  return is_persistent(config) && config.blocks_resident == 1 ? 6000 : 4000;
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
                                  .weights_are_rows = true,
                                  .type = is_fast ? MatrixType::fp8 : MatrixType::bits16,
                                  .matrix_share = grouped_share(config),
                                  .converts_weights = true,
                                  .converts_in_turns = config.blocks_resident > 1 || is_fast,
                                  .stages = config.stages,
                                  .split_k = config.split_k,
                                  .blocks_per_multiprocessor = config.blocks_resident,
                                  .persistent = is_persistent(config),
                                  .dependent_launch = config.dependent_launch,
                                  .end_clocks = end_clocks(config)});
}

WorkModel work_of(const ProductProblem& problem, const Config& config) {
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
  work.parts.emplace_back(config.dense ? dense_product(problem, config) : grouped_product(problem, config));
  return work;
}

// --- the family

struct Family : ProductFamily<Family, Config> {
  static constexpr std::string_view name = "packed";
  static constexpr std::string_view summary =
      "NVFP4 weights, of all experts too, packed once and made into the operand of wgmma in registers";
  static constexpr Overrides overrides = [] {
    Overrides all = ProductFamily<Family, Config>::overrides;
    all.sums = all.completed = true;
    return all;
  }();

  static const KnobTable<Config>& knob_table() { return wgmma_dequant::knob_table(); }

  /// Blocks take whole stages of a split.
  static std::optional<std::vector<std::string>> sums(const Config& config) {
    if (config.split_k > max_steady_split) {
      return std::nullopt;
    }
    std::vector<std::string> names{"numerics", "split_k"};
    if (config.split_k > 1) {
      names.insert(names.end(), {"blocks_per_slot", "overlap", "static_tiles"});
    }
    return names;
  }
  static bool quantizes_in_second_pass(const ProductProblem&) { return true; }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool has_tokens = problem.a == Format::fp16 || problem.a == Format::bf16 || problem.a == Format::nvfp4;
    if (has_tokens && problem.b == Format::nvfp4 && device.matrix_unit == MatrixUnit::wgmma) {
      return std::nullopt;
    }
    return fmt::format(
        "strategy packed needs fp16, bf16 or nvfp4 tokens, nvfp4 weights and a Hopper GPU, not {} with {} on {}",
        thresher::name(problem.a), thresher::name(problem.b), device.name);
  }

  static Config own_choice(const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    return {.dense = has_static_tiles(problem)};
  }
  static Config completed(Config config, const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    set_outputs(config, problem);
    config.operand = config.numerics == Numerics::exact && problem.a == Format::bf16 ? Number::bf16 : Number::fp16;
    return config;
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec& device) {
    const Numerics numerics = asked_numerics(knobs);
    if (own.dense) {
      return dense_candidates(numerics, problem.rows);
    }
    std::vector<Config> found = grouped_candidates(numerics, problem.matrices(), problem.rows);
    std::vector<Config> few;
    if (tries_static_tiles(problem)) {
      few = static_candidates(numerics, problem.matrices(), problem.rows, problem.n);
    } else if (!problem.is_dense()) {
      few = split_candidates(numerics, problem.matrices(), most_active_experts(problem), problem.n,
                             device.multiprocessors);
    }
    found.insert(found.end(), few.begin(), few.end());
    for (Config& config : found) {
      config = fitted(config, narrow(problem.k));
    }
    return found;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    InfeasibleReasons found;
    check_stage(problem, config, found);
    check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
    if (config.dense) {
      check_dense(config, device, found);
    } else {
      check_grouped(problem, config, device, found);
    }
    return found.take();
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return work_of(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, config, device.multiprocessors);
  }

  static OperandFormats formats(const Config& config) {
    return {config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4, Format::nvfp4};
  }
  /// With such a rest of K dense tokens of 16 bits are padded first; without one they are read where they lie.
  static std::int64_t k_granule(const Config&) { return 16; }
  /// One more than the stages, for each half of a split, and `rest`.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const std::int64_t k = std::int64_t{stage_k(config)} * (config.split_k * config.stages + 1);
    return with_extents(problem, {.experts = 5,
                                  .rows = config.dense ? config.block_tokens + 1 : 2 * config.block_tokens + 21,
                                  .n = tile_outputs(config) + 5,
                                  .k = in_whole_stages(config, k + rest)});
  }
  static ProductProblem smallest_sample(const ProductProblem& problem, const Config& config) {
    const std::int64_t other_parts = config.dense ? 0 : (config.split_k - 1) * stages_at_once(config);
    const std::int64_t least_k = std::int64_t{stage_k(config)} * other_parts + k_granule(config);
    return with_extents(problem,
                        {.experts = 3, .rows = config.dense ? 1 : 2, .n = 1, .k = in_whole_stages(config, least_k)});
  }
  static pipeline::Shape profile_shape(const Config& config) { return shape_of(config); }

  static std::vector<Config> default_configs() {
    std::vector<Config> found = grouped_default_configs();
    found.insert(found.end(), dense_default_configs.begin(), dense_default_configs.end());
    return found;
  }
  static const auto& small_configs() { return wgmma_dequant::small_configs; }
};

}  // namespace
}  // namespace wgmma_dequant

const Strategy<ProductProblem>& packed_strategy() {
  return strategy_of<WithOutputQuantization<wgmma_dequant::Family>>();
}

}  // namespace thresher::strategies::gemm
