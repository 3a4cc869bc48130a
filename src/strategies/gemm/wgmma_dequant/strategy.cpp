#include "strategies/gemm/wgmma_dequant/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma_dequant/candidates.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/plan.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {
namespace wgmma_dequant {
namespace {

// --- problems and configurations

Config with_problem(Config config, const ProductProblem& problem) {
  config.operand = config.numerics == Numerics::exact && problem.a == Format::bf16 ? Number::bf16 : Number::fp16;
  config.output = number_of(problem.out);
  config.matrices = problem.matrices();
  config.activation = problem.activation ? code_of(problem.activation->kind) : ActivationCode::silu;
  config.bias = problem.bias;
  config.row_weights = problem.row_weights;
  config.gathered = problem.layout == ProductRows::gathered;
  return config;
}

/// Its tokens have the format that the kernel reads as it lies, or NVFP4.
ProductProblem problem_of(const Config& config) {
  ProductProblem problem;
  if (config.grouped) {
    problem.layout = config.gathered ? ProductRows::gathered : ProductRows::contiguous;
  }
  problem.a = config.operand == Number::bf16 ? Format::bf16 : Format::nvfp4;
  problem.b = Format::nvfp4;
  problem.out = format_of(config.output);
  problem.bias = config.bias;
  problem.row_weights = config.row_weights;
  if (config.matrices == 2) {
    problem.activation = Activation{.kind = kind_of(config.activation)};
  }
  return problem;
}

/// With such a rest of K dense tokens of 16 bits are padded first; without one they are read where they lie.
constexpr std::int64_t ragged_k = 16;

/// One more than the stages, for each half of a split, and `rest`.
ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
  return with_extents(problem, {.experts = 5,
                                .rows = config.grouped ? 2 * config.block_tokens + 21 : config.block_tokens + 1,
                                .n = tile_outputs(config) + 5,
                                .k = std::int64_t{stage_k(config)} * (config.split_k * config.stages + 1) + rest});
}

template <class Configs>
std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
  std::vector<Sample<ProductProblem>> found;
  std::transform(configs.begin(), configs.end(), std::back_inserter(found), [](const Config& config) {
    return Sample<ProductProblem>{multi_tile_sample(problem_of(config), config, ragged_k),
                                  knob_table(config).knobs(config)};
  });
  return found;
}

// --- infeasible configurations

/// Addresses, packed words, fragments and the epilogue's values, beside the accumulators: at the least.
constexpr int other_registers = 32;

/// Whole stages fill K as packing pads it.
void check_stage(const Config& config, InfeasibleReasons& found) {
  const int walked_k = static_cast<int>(stage_k(config)) * stages_at_once(config);
  if (const auto padded_k = static_cast<int>(k_block_multiple * block_k); padded_k % walked_k != 0) {
    found.say("tile: {} along K a stage do not divide the {} to which weights are padded", walked_k, padded_k);
  }
}

void check_dense(const Config& config, const DeviceSpec& device, InfeasibleReasons& found) {
  const pipeline::Shape shape = shape_of(config);
  if (config.block_tokens % (8 * config.split_k) != 0) {
    found.say("split-K: {} tokens are not a multiple of 8 for each of {} parts", config.block_tokens, config.split_k);
  }
  if (const int bytes = pipeline::shared_bytes(shape); bytes > device.shared_bytes_per_block) {
    found.say("shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", bytes,
              config.stages, shape.slot_bytes, device.shared_bytes_per_block, device.shared_bytes_per_block / 1024);
  }
  const int sums = pipeline::math_threads(shape) * config.block_tokens / 2 / 2 * 4;
  if (config.split_k > 1 && sums > pipeline::slots_bytes(shape)) {
    found.say("split-K: {} bytes of partial sums do not fit into {} stages of {}", sums, config.stages,
              shape.slot_bytes);
  }
  check_registers({.shape = shape, .blocks_resident = config.blocks_resident}, device, found);
}

void check_grouped(const ProductProblem& problem, const Config& config, const DeviceSpec& device,
                   InfeasibleReasons& found) {
  check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
  if (config.numerics == Numerics::fast && problem.layout == ProductRows::masked && problem.a != Format::nvfp4) {
    found.say("fast: tokens of {} in slots are not quantized, those of packed and gathered rows are",
              thresher::name(problem.a));
  }
  check_block({.shape = shape_of(config),
               .blocks_resident = config.blocks_resident,
               .experts = problem.experts,
               .registers = config.block_tokens / 2 + other_registers},
              device, found);
}

template <bool grouped>
struct Family : FamilyDefaults<ProductProblem, Config> {
  static constexpr std::string_view name = "packed";
  static constexpr std::string_view summary =
      grouped ? "NVFP4 weights of all experts, packed once, made into the operand of wgmma in registers"
              : "NVFP4 weights, packed once, made into the operand of wgmma in registers";
  static constexpr Overrides overrides{.own_choice = true,
                                       .completed = true,
                                       .candidates = true,
                                       .work = true,
                                       .profiled = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};

  static const KnobTable<Config>& knob_table() { return wgmma_dequant::knob_table({.grouped = grouped}); }

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

  static Config own_choice(const ProductProblem&, const Knobs&, const DeviceSpec&) { return {.grouped = grouped}; }
  static Config completed(const Config& config, const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    return with_problem(config, problem);
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Config&, const Knobs& knobs,
                                        const DeviceSpec&) {
    const Numerics numerics = asked_numerics(knobs);
    return grouped ? grouped_candidates(numerics, problem.matrices(), problem.rows)
                   : dense_candidates(numerics, problem.rows);
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    InfeasibleReasons found;
    check_stage(config, found);
    if (grouped) {
      check_grouped(problem, config, device, found);
    } else {
      check_dense(config, device, found);
    }
    return found.take();
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return wgmma_dequant::work(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, config, device.multiprocessors);
  }

  static std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Config& config,
                                              const DeviceSpec& device, const ProfileRequest& request) {
    if (grouped) {
      return std::nullopt;
    }
    Config wanted = config;
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    PlannedCall call = plan(problem, wanted, device);
    const std::size_t step = call.preparation_steps;
    return ProfiledCall{std::move(call), step, shape_of(wanted)};
  }

  static std::vector<ProductProblem> edges(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    if (grouped) {
      return {with_whole_scales(multi_tile_sample(problem, config, ragged_k)),
              with_whole_scales(with_extents(problem, {.experts = 3, .rows = 2, .n = 1, .k = ragged_k}))};
    }
    return {with_whole_scales(multi_tile_sample(problem, config, ragged_k)),
            with_whole_scales(multi_tile_sample(problem, config, 0)),
            with_whole_scales(with_extents(problem, 1, 1, ragged_k))};
  }
  static std::vector<Sample<ProductProblem>> built_in() {
    return grouped ? samples_of(grouped_default_configs) : samples_of(dense_default_configs);
  }
  static std::vector<Sample<ProductProblem>> samples() {
    return grouped ? samples_of(grouped_small_configs) : samples_of(dense_small_configs);
  }
};

}  // namespace

}  // namespace wgmma_dequant

const Strategy<ProductProblem>& dense_packed_strategy() {
  static const KernelStrategy<WithOutputQuantization<wgmma_dequant::Family<false>>> strategy;
  return strategy;
}

const Strategy<ProductProblem>& grouped_packed_strategy() {
  static const KernelStrategy<WithOutputQuantization<wgmma_dequant::Family<true>>> strategy;
  return strategy;
}

}  // namespace thresher::strategies::gemm
