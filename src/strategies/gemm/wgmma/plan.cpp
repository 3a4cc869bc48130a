#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/integers.hpp"
#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/plain_call.hpp"
#include "strategies/gemm/product_config.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"
#include "strategies/gemm/wgmma/tiles.hpp"
#include "strategies/gemm/work.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {
namespace wgmma {
namespace {

constexpr int max_box_rows = 256;
constexpr int max_columns = 256;  ///< of the matrix instruction
/// Addresses, phases and the epilogue's values, beside the accumulators: measured of compiled kernels.
constexpr int other_registers = 40;

// --- problems and configurations

/// FP8 where tokens are FP8 too, and 16 bits where these are quantized: the fused kernels take all other dual GEMMs.
bool takes_dual_gemm(const ProductProblem& problem) {
  return is_fp8(problem.a) || format_traits(problem.out).is_quantized_output();
}

bool takes_operands(const ProductProblem& problem) {
  return (problem.a == problem.b && is_16_bit(problem.a)) || (is_fp8(problem.a) && is_fp8(problem.b));
}

/// The defaults of a strategy, with what a problem decides.
Config with_problem(Config config, const ProductProblem& problem) {
  config.operand = number_of(problem.a);
  config.token_scaling = scaling_of(problem.a);
  config.weight_scaling = scaling_of(problem.b);
  config.output_scaling = scaling_of(problem.out);
  set_outputs(config, problem);
  return config;
}

ProductProblem problem_of(const Config& config) {
  const OperandFormats operands{format_of(config.operand, config.token_scaling),
                                format_of(config.operand, config.weight_scaling)};
  ProductProblem problem = gemm::problem_of(config, operands, grouped_rows(config));
  problem.out = format_of(config.output, config.output_scaling);
  return problem;
}

/// Along K, 16 bytes: as little as there can be.
std::int64_t ragged_k(const Config& config) { return 16 / element_bytes(config.operand); }

/// Several tiles of every width, outputs beyond a tile and K beyond the ring.
ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config) {
  return with_whole_scales(
      with_extents(problem, {.experts = 5,
                             .rows = 2 * config.block_tokens + 21,
                             .n = tile_outputs(config) + 8,
                             .k = config.block_k * (config.split_k * config.stages + 1) + ragged_k(config)}));
}

/// A sample of these knobs as a dual GEMM, where it has all that one has and nothing else.
std::optional<ProductProblem> as_dual_gemm(ProductProblem problem) {
  if (problem.matrices() == 1 || problem.bias || problem.row_weights || problem.layout != ProductRows::contiguous ||
      !takes_dual_gemm(problem)) {
    return std::nullopt;
  }
  problem.layout = ProductRows::dense;
  problem.experts = 1;
  return problem;
}

template <class Configs>
std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
  std::vector<Sample<ProductProblem>> found;
  std::vector<Sample<ProductProblem>> dense;
  for (const Config& config : configs) {
    const ProductProblem problem = multi_tile_sample(problem_of(config), config);
    const Knobs knobs = knob_table(config.tokens_are_rows).knobs(config);
    found.push_back({problem, knobs});
    if (const std::optional<ProductProblem> dual_gemm = as_dual_gemm(problem)) {
      dense.push_back({*dual_gemm, knobs});
    }
  }
  found.insert(found.end(), dense.begin(), dense.end());
  return found;
}

// --- infeasible configurations

void check_columns(const Config& config, InfeasibleReasons& found) {
  if (weight_box_rows(config) > max_box_rows) {
    found.say("TMA: a box of {} rows of weights is over the limit of {}", weight_box_rows(config), max_box_rows);
  }
  if (config.by_turns && (config.math_warpgroups < 2 || config.stages < 2)) {
    found.say("by_turns: {} consumer warpgroups and {} stages cannot alternate: use 2 of each at least",
              config.math_warpgroups, config.stages);
  }
  if (config.output_scaling == Scaling::block && tile_warpgroups(config) % 2 != 0) {
    found.say(
        "quantized output: a warpgroup makes {} of the {} outputs that share a scale, and the one beside it the "
        "others: "
        "use 2 or 4 consumer warpgroups on one tile",
        sum_rows, scale_block);
  }
}

void check_rows(const Config& config, InfeasibleReasons& found) {
  if (const int columns = 2 * config.block_outputs; columns > max_columns) {
    found.say("tile: {} rows of weights are over the limit of {}, a matrix instruction's columns", columns,
              max_columns);
  }
  if (config.math_warpgroups < 2 || config.stages < 2) {
    found.say("rows: {} consumer warpgroups and {} stages cannot alternate: use 2 of each at least",
              config.math_warpgroups, config.stages);
  }
  if (const int shared_rows = sum_rows * tile_warpgroups(config); config.block_tokens % shared_rows != 0) {
    found.say("rows: {} tokens are not a multiple of the {} that {} warpgroups share", config.block_tokens, shared_rows,
              tile_warpgroups(config));
  }
  if (config.output_scaling == Scaling::block && tile_outputs(config) != scale_block) {
    found.say("quantized output: {} outputs share a scale, a tile has {}: use tiles of as many", scale_block,
              tile_outputs(config));
  }
}

// --- work

/// The number of blocks that static tiles take.
std::int64_t static_blocks(const ProductProblem& problem, const Config& config) {
  return ceil_div(problem.rows, std::int64_t{config.block_tokens}) *
         ceil_div(problem.n, std::int64_t{tile_outputs(config)}) * config.split_k;
}

/// Whether multiprocessors have two blocks each: one multiplies while the other adds.
bool shares_multiprocessors(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
  return config.static_tiles && config.blocks_resident > 1 && static_blocks(problem, config) > device.multiprocessors;
}

/// Measured on an H200 with many rows an expert (measurements/grouped_fp8_variants_h200_2026-11-24.txt.xz). With
/// ping-pong, nothing hides a warpgroup's additions. Scales of blocks cost a multiplication for each, and in columns a
/// shuffle. Tiles of 128 outputs are not timed yet and taken for as fast as those of 96.
double promoting_share(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
  const bool has_blocks = has_block_scales(scaling_knobs(config));
  if (!config.tokens_are_rows) {
    if (has_blocks && shares_multiprocessors(problem, config, device)) {
      return 0.45;  // measurements/fp8_tiles_h200_2026-11-29.json.xz
    }
    if (has_blocks && config.static_tiles && config.math_warpgroups == 1 && config.block_tokens >= 64) {
      return 0.20;  // one warpgroup alone: measurements/whole_layers_h200_2026-11-29.json.xz
    }
    return config.by_turns ? (has_blocks ? 0.29 : 0.47) : has_blocks ? 0.34 : 0.64;
  }
  if (!has_blocks) {
    return config.by_turns ? 0.45 : 0.60;
  }
  return config.by_turns ? 0.39 : config.block_outputs > 96 ? 0.63 : config.block_outputs > 64 ? 0.60 : 0.54;
}

/// Measured with one matrix of 16 bits too (measurements/plain_tiles_h200_2026-11-29.txt.xz). 0: not measured.
double matrix_share(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
  if (promotes(config)) {
    return promoting_share(problem, config, device);
  }
  return problem.is_dense() && is_16_bit(problem.a) ? 0.81 : 0;
}

/// Static tiles, whose weights come while the launch ahead ends, were measured in whole layers (static_tiles,
/// gate_up_tiles and, with FP8, fp8_tiles in measurements/). A ring of eight stages draws a 64th of what memory gives.
/// 0: not measured.
double dram_share(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
  if (!config.static_tiles) {
    return 0;
  }
  if (config.blocks_resident > 1) {
    return promotes(config) && shares_multiprocessors(problem, config, device) ? 1 : 0.97;
  }
  constexpr double blocks_at_full_rate = 64;
  const auto blocks = static_cast<double>(static_blocks(problem, config));
  const double alone = promotes(config) && config.math_warpgroups == 1 ? (config.split_k > 1 ? 0.90 : 0.93) : 1;
  return alone * std::min(1.0, blocks / blocks_at_full_rate);
}

// --- launch

/// Two tiles of 64 rows of weights in columns, one of tokens in rows; of each width that tiles have, 32 bytes along K.
Expectations expected_products(const Config& config) {
  const SlotLayout slots = slot_layout(config);
  Expectations expected;
  expected.matrix_kind = config.operand == Number::e4m3 ? "QGMMA" : "HGMMA";
  expected.min_matrix_instructions =
      (config.tokens_are_rows ? 1 : 2) * slots.panels() * slots.row_bytes() / product_row_bytes;
  expected.min_tma_loads = 3;
  return expected;
}

PlainKernel kernel(const ProductProblem& problem, const Config& config) {
  const pipeline::Shape shape = shape_of(config);
  KernelLaunch launch =
      product_launch(program(config), shape, config.blocks_resident,
                     config.static_tiles ? pipeline::shared_bytes(shape)
                                         : pipeline::grouped_shared_bytes(shape, narrow(problem.experts)));
  launch.dependent = config.dependent_launch;
  launch.releases_after_wait = config.dependent_launch && !config.static_tiles;
  launch.expected = expected_products(config);
  return {.launch = std::move(launch),
          .operand = config.operand,
          .token_scaling = config.token_scaling,
          .weight_scaling = config.weight_scaling,
          .matrices = config.matrices,
          .tile_widths = tile_widths_of(config),
          .tile_outputs = tile_outputs(config),
          .boxes = boxes_of(slot_layout(config), tile_widths_of(config)),
          .blocks_resident = config.blocks_resident,
          .profiled = config.profiled};
}

template <bool tokens_are_rows>
struct Family : FamilyDefaults<ProductProblem, Config> {
  static constexpr std::string_view name = tokens_are_rows ? "rows" : "columns";
  static constexpr std::string_view summary =
      tokens_are_rows
          ? "for many tokens of 16 bits or FP8 an expert, which are rows of the matrix instruction; two warpgroups "
            "alternate"
          : "16-bit or FP8 weights as rows of the matrix instruction, tokens as its columns, as many as a group has "
            "left";
  static constexpr Overrides overrides{.sums = true,
                                       .own_choice = true,
                                       .candidates = true,
                                       .work = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};

  static const KnobTable<Config>& knob_table() { return wgmma::knob_table(tokens_are_rows); }

  /// Products of a stage are added to the sums where these are promoted, and blocks take whole stages of a split.
  static std::optional<std::vector<std::string>> sums(const Config& config) {
    return config.split_k > max_steady_split
               ? std::nullopt
               : std::optional(std::vector<std::string>{"numerics", "block_k", "split_k"});
  }

  /// Where the sums are, scales are given, or found of 128 outputs.
  static bool quantizes_in_second_pass(const ProductProblem& problem) {
    return problem.out != Format::fp8_tensor && problem.out != Format::fp8_block;
  }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool is_dual_gemm = problem.is_dense() && problem.matrices() == 2;
    if (device.matrix_unit == MatrixUnit::wgmma && takes_operands(problem) &&
        (!is_dual_gemm || takes_dual_gemm(problem))) {
      return std::nullopt;
    }
    if (is_dual_gemm) {
      return fmt::format(
          "strategy {} takes FP8 with FP8, and 16 bits with the same where outputs are quantized, on a Hopper GPU, "
          "not {} with {} to {} on {}",
          name, thresher::name(problem.a), thresher::name(problem.b), thresher::name(problem.out), device.name);
    }
    return fmt::format(
        "strategy {} takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not {} with {} on {}; it takes FP8 with "
        "FP8 too, whatever its scales are of",
        name, thresher::name(problem.a), thresher::name(problem.b), device.name);
  }

  /// Returns the usual tile, or one that fits. Sums accumulated in float32 do not fit twice into the usual tile. The
  /// usual tile of rows does not have all outputs that share a scale.
  static Config own_choice(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) {
    const Config config = defaults(problem, knobs);
    const bool needs_another = promotes(config) || (tokens_are_rows && config.output_scaling == Scaling::block);
    return needs_another ? with_tile(config, shapes_for(config).front()) : config;
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Config&, const Knobs& knobs,
                                        const DeviceSpec&) {
    const Config config = defaults(problem, knobs);
    std::vector<Config> found = in_tiles(config, problem.rows);
    std::vector<Config> few;
    if (!tokens_are_rows && tries_static_tiles(problem)) {
      few = columns::in_static_tiles(config, problem.rows, problem.n);
    } else if (!tokens_are_rows && !problem.is_dense()) {
      few = columns::in_split_tiles(config, most_active_experts(problem), problem.n);
    }
    found.insert(found.end(), few.begin(), few.end());
    return found;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    InfeasibleReasons found;
    check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
    (tokens_are_rows ? check_rows : check_columns)(config, found);
    check_tiles(problem, shape_of(config), {config.static_tiles, config.least_tokens},
                ceil_div(problem.k, std::int64_t{config.block_k}), found);
    check_split(shape_of(config), config.block_tokens, wgmma::sums(config), found);
    check_numbers({config.numerics, config.operand, scaling_knobs(config), config.block_k}, found);
    check_block({.shape = shape_of(config),
                 .blocks_resident = config.blocks_resident,
                 .experts = problem.experts,
                 .registers = sum_registers(config) + other_registers},
                device, found);
    return found.take();
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    WorkModel work;
    if (config.gathered) {
      work.parts.emplace_back(gathering_work(problem));
    }
    work.parts.emplace_back(grouped_kernel(problem, {.weight_rows = 2 * weight_box_rows(config),
                                                     .outputs = tile_outputs(config),
                                                     .tile_widths = tile_widths_of(config),
                                                     .k = config.block_k,
                                                     .weights_are_rows = !tokens_are_rows,
                                                     .type = matrix_type(config.operand),
                                                     .matrix_share = matrix_share(problem, config, device),
                                                     .stages = config.stages,
                                                     .split_k = config.split_k,
                                                     .blocks_per_multiprocessor = config.blocks_resident,
                                                     .persistent = is_persistent(config),
                                                     .hides_epilogue = config.by_turns,
                                                     .dependent_launch = config.dependent_launch,
                                                     .dram_share = dram_share(problem, config, device)}));
    return work;
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, kernel(problem, config), device.multiprocessors);
  }
  static std::vector<ProductProblem> edges(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    const SampleExtents least{
        .experts = 3, .rows = 2, .n = 8, .k = config.block_k * (config.split_k - 1) + ragged_k(config)};
    return {multi_tile_sample(problem, config), with_extents(problem, least)};
  }
  static std::vector<Sample<ProductProblem>> built_in() {
    return tokens_are_rows ? std::vector<Sample<ProductProblem>>{} : samples_of(columns::default_config_list);
  }
  static std::vector<Sample<ProductProblem>> samples() {
    return tokens_are_rows ? samples_of(rows::small_config_list) : samples_of(columns::small_config_list);
  }

 private:
  /// Returns default knobs with the numerics that are asked for, because tiles depend on these.
  static Config defaults(const ProductProblem& problem, const Knobs& knobs) {
    Config config{.tokens_are_rows = tokens_are_rows, .numerics = asked_numerics(knobs)};
    if constexpr (tokens_are_rows) {
      config.by_turns = true;
      config.stages = 6;
    }
    return with_problem(config, problem);
  }
};

}  // namespace
}  // namespace wgmma

const Strategy<ProductProblem>& columns_strategy() {
  return strategy_of<WithOutputQuantization<wgmma::Family<false>>>();
}
const Strategy<ProductProblem>& rows_strategy() { return strategy_of<WithOutputQuantization<wgmma::Family<true>>>(); }

}  // namespace thresher::strategies::gemm
