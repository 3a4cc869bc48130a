#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/integers.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/output_quantization.hpp"
#include "strategies/gemm/product_config.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/fused/tiles.hpp"
#include "strategies/gemm/work.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm::fused {
namespace {

/// Few tokens leave a kernel waiting for memory from its first moment: starting it before the last one has ended pays
/// there, and costs elsewhere (docs/design/kernels/dual-gemm.md).
constexpr std::int64_t max_rows_bound_by_memory = 128;

constexpr int max_columns = 256;
constexpr int max_box_rows = 256;
/// Addresses, phases and the epilogue's values, beside the accumulators: the least, and measured of compiled kernels.
constexpr int min_other_registers = 24;
/// Its polynomials and reciprocals.
constexpr int min_other_registers_of_situ = 48;
constexpr int other_registers = 32;

constexpr int max_stages = 8;
constexpr int max_even_rounds = 8;
constexpr int min_even_outputs = 24;
/// Tokens that L2 does not keep beside weights.
constexpr std::int64_t min_bytes_beyond_l2 = 24'000'000;
constexpr std::int64_t min_rows_of_wide_tiles = 2048;
constexpr int reallocated_loader_registers = 40;
constexpr int max_math_registers = 240;

/// In one math thread.
int accumulators(const Config& config) { return passes(config) * config.warpgroup_tiles * slot_weights(config) / 2; }

// --- infeasible configurations

void check_tile(const Config& config, InfeasibleReasons& found) {
  if (slot_weights(config) > max_columns) {
    found.say("matrix shape: {} columns (rows of weights in a stage), wgmma takes up to {}", slot_weights(config),
              max_columns);
  }
  const int granule = 8 * config.split_k;
  if (config.block_outputs % granule != 0) {
    found.say("tile: {} outputs are not a multiple of {} (8 for each of {} parts of a split)", config.block_outputs,
              granule, config.split_k);
  }
  if (config.block_k % panel_k != 0) {
    found.say("tile: {} of k are not a multiple of {}, a swizzled row of 128 bytes", config.block_k, panel_k);
  }
}

void check_copies(const ProductProblem& problem, const Config& config, InfeasibleReasons& found) {
  if (const std::int64_t bytes = problem.n * element_bytes(config.output);
      config.epilogue == Epilogue::tma && bytes % tma_alignment_bytes != 0) {
    found.say("TMA: a row of c is {} bytes, not a multiple of {}: use the simt epilogue", bytes, tma_alignment_bytes);
  }
  if (block_tokens(config) > max_box_rows) {
    found.say("TMA: a box of {} tokens is over the limit of {}", block_tokens(config), max_box_rows);
  }
}

void check_cluster(const ProductProblem& problem, const Config& config, const DeviceSpec& device,
                   InfeasibleReasons& found) {
  if (const int blocks = pipeline::cluster_blocks(shape_of(config)); blocks > device.max_cluster) {
    found.say("cluster: {} blocks are over the limit of {}", blocks, device.max_cluster);
  }
  if (const std::int64_t steps = ceil_div(problem.k, config.block_k); config.split_k > steps) {
    found.say("split-K: {} parts of {} K steps leave a block without work", config.split_k, steps);
  }
  if (config.split_k > 2) {
    found.say("split-K: {} parts, this kernel adds up 2", config.split_k);
  }
  if (slot_weights(config) % weight_pieces(config) != 0 || piece_rows(config) % 8 != 0) {
    found.say("multicast: {} rows of weights in {} pieces are not pieces of whole groups of 8 rows",
              slot_weights(config), weight_pieces(config));
  }
}

void check_order(const Config& config, InfeasibleReasons& found) {
  if (config.order == Order::pingpong && (!config.persistent || config.math_warpgroups < 2)) {
    found.say("pingpong: {} consumer warpgroups{} cannot alternate: use 2 and persistent", config.math_warpgroups,
              config.persistent ? "" : " with one tile a block");
  }
  if (config.persistent && config.split_k > 1) {
    found.say("split-K: partial sums lie in the stages that a persistent block refills: use one tile a block");
  }
  if (config.stages < 2 && config.order == Order::pingpong) {
    found.say("stages: {}, alternating needs 2", config.stages);
  }
  if (config.epilogue == Epilogue::tma && config.output == Number::fp32) {
    found.say("epilogue: tma stages outputs of 16 bits, not fp32: use simt");
  }
}

// --- candidates

/// As many stages as fit, up to a limit: they cost nothing where only one block fits anyway.
void fill_stages(Config& config, const DeviceSpec& device) {
  config.stages = max_stages;
  while (config.stages > 2 && pipeline::shared_bytes(shape_of(config)) > device.shared_bytes_per_block) {
    --config.stages;
  }
}

/// Moves registers from the producer to the consumer warpgroups where the launch alone gives too few.
void reallocate_registers(Config& config, const DeviceSpec& device) {
  const int at_launch = launch_registers(shape_of(config), 1, device);
  const bool is_situ = config.activation == ActivationCode::situ;
  if (accumulators(config) + (is_situ ? min_other_registers_of_situ : min_other_registers) <= at_launch) {
    return;
  }
  const int spare = (at_launch - reallocated_loader_registers) / config.math_warpgroups / 8 * 8;
  if (spare > 0) {
    config.loader_registers = reallocated_loader_registers;
    config.math_registers = std::min(max_math_registers, at_launch + spare);
  }
}

/// `config` with `knobs` in place of its own, and what follows from them where they do not say.
Config finished(Config config, const Knobs& knobs, const DeviceSpec& device) {
  const auto apply = [&] { config = knob_table().with(config, knobs, name(config.order)); };
  apply();
  fill_stages(config, device);
  apply();
  reallocate_registers(config, device);
  apply();
  return config;
}

/// Two stages leave one load in flight: 1.7 times the time of three (measurements/plain_tiles_h200_2026-11-29.txt.xz).
constexpr int min_stages = 3;

/// Whether the second warpgroup's staging takes a slot from the ring of a pingpong. Such tiles have never been timed.
bool loses_a_stage_to_staging(const Config& config, const DeviceSpec& device) {
  const int staging = shape_of(config).staging_bytes;
  const int bytes = pipeline::shared_bytes(shape_of(config)) + shape_of(config).slot_bytes;
  return config.order == Order::pingpong && config.stages < max_stages &&
         bytes - staging <= device.shared_bytes_per_block;
}

bool takes_tma_stores(const ProductProblem& problem) { return thresher::bits(problem.out) == 16 && problem.n % 8 == 0; }

/// Alternating needs a second tile; partial sums lie where a second tile's operands would.
bool takes_tiles_as_it_can(const Config& config) {
  return config.order == Order::pingpong ? config.persistent : !config.persistent || config.split_k == 1;
}

bool waits_for_memory(const ProductProblem& problem) { return problem.rows <= max_rows_bound_by_memory; }

/// Usual widths, and where memory is the bound, for each number of rounds the narrowest that needs no more. One matrix
/// has twice the columns.
std::vector<int> tile_outputs(const ProductProblem& problem, int multiprocessors) {
  std::vector<int> found{32, 48, 64, 80, 96, 112, 128};
  if (problem.matrices() == 1) {
    found.insert(found.end(), {160, 192, 224, 256});
  }
  for (int rounds = 1; waits_for_memory(problem) && rounds <= max_even_rounds; ++rounds) {
    const std::int64_t outputs = round_up(ceil_div(problem.n, std::int64_t{multiprocessors} * rounds), 8);
    if (outputs >= min_even_outputs && outputs <= max_columns / problem.matrices()) {
      found.push_back(narrow(outputs));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Config> all_candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                   const DeviceSpec& device) {
  std::vector<Config> all;
  Config config = own;
  config.epilogue = takes_tma_stores(problem) ? Epilogue::tma : Epilogue::simt;
  for (const int tokens : {64, 128, 256}) {
    config.math_warpgroups = own.order == Order::pingpong || tokens > 64 ? 2 : 1;
    config.warpgroup_tiles = tokens / 64 / (own.order == Order::pingpong ? 1 : config.math_warpgroups);
    for (const int outputs : tile_outputs(problem, device.multiprocessors)) {
      config.block_outputs = outputs;
      for (const int split : {1, 2}) {
        config.split_k = split;
        for (const bool persistent : {false, true}) {
          config.persistent = persistent;
          if (!takes_tiles_as_it_can(config)) {
            continue;
          }
          const Config candidate = finished(config, knobs, device);
          if (!knobs.empty() || (candidate.stages >= min_stages && !loses_a_stage_to_staging(candidate, device))) {
            all.push_back(candidate);
          }
        }
      }
    }
  }
  return all;
}

// --- work

/// The tiles that multiprocessors wait for in the last round, as a share of all. From the third round on, blocks that
/// are served early take a few tiles more.
double idle_share(std::int64_t blocks, std::int64_t slots) {
  const std::int64_t whole = blocks / slots;
  const std::int64_t taken_early = whole > 1 ? whole * slots * 3 / 100 : 0;
  const std::int64_t rounds = std::max<std::int64_t>(1, ceil_div(blocks - taken_early, slots));
  return std::max(0.0, static_cast<double>(rounds * slots) / static_cast<double>(blocks) - 1);
}

/// The share of memory's rate that few rows reach: less where multiprocessors wait in the last round, where blocks
/// have their tiles dealt out beforehand, and where weights are read again
/// (measurements/gate_up_tiles_h200_2026-11-29.txt.xz). 0: not measured.
double dram_share(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
  if (!waits_for_memory(problem)) {
    return 0;
  }
  const std::int64_t row_tiles = ceil_div(problem.rows, block_tokens(config));
  const std::int64_t blocks = row_tiles * ceil_div(problem.n, config.block_outputs) * config.split_k;
  const std::int64_t slots = device.resident_blocks(config.multicast * config.split_k, 1);
  const bool is_dealt_out = config.persistent && blocks > slots;
  const double loss = std::min(0.3 * idle_share(blocks, slots), 0.08) +
                      (is_dealt_out ? 0.1 : 0) * static_cast<double>(row_tiles) +
                      0.09 * static_cast<double>(row_tiles - 1);
  const double one_matrix = config.matrices == 2 ? 1 : slot_weights(config) < 64 ? 0.88 : 0.96;
  return (block_tokens(config) > 64 ? 0.90 : 0.98) * one_matrix / (1 + loss);
}

/// How much longer a step of one matrix and many rows takes than its parts say: where pairs of blocks divide K, where a
/// warpgroup's tile has 64 rows, and where tiles need more bytes for a product than those of 128 × 256. Tiles of
/// 64 × 256 do as long as L2 keeps the tokens (measurements/plain_tiles_h200_2026-11-29.txt.xz).
double step_factor(const ProductProblem& problem, const Config& config) {
  if (waits_for_memory(problem) || config.matrices == 2) {
    return 1;
  }
  const bool is_low = config.order == Order::pingpong && config.warpgroup_tiles == 1;
  const bool pays_for_bytes =
      is_low ? problem.rows * problem.k * 2 >= min_bytes_beyond_l2 : problem.rows >= min_rows_of_wide_tiles;
  const double bytes = 1.0 / block_tokens(config) + 1.0 / config.block_outputs;
  return (config.split_k > 1 ? 1.25 : 1) * (is_low ? 1.08 : 1) *
         (pays_for_bytes ? 1 + 25 * std::max(0.0, bytes - (1.0 / 128 + 1.0 / 256)) : 1);
}

/// A problem of a few tiles for `config`.
ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config) {
  return with_extents(problem, {.rows = block_tokens(config) + 1,
                                .n = config.block_outputs + 8,
                                .k = config.block_k * (config.stages * config.split_k + 1) + 8});
}

template <Order order, class Configs>
std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
  std::vector<Sample<ProductProblem>> found;
  for (const Config& config : configs) {
    if (config.order == order) {
      const Format operand = format_of(config.operand);
      const ProductProblem problem = problem_of(config, {operand, operand}, ProductRows::dense);
      found.push_back({multi_tile_sample(problem, config), knob_table().knobs(config)});
    }
  }
  return found;
}

template <Order order>
struct Fused : FamilyDefaults<ProductProblem, Config> {
  static constexpr std::string_view name = order == Order::sequential ? "sequential"
                                           : order == Order::pingpong ? "pingpong"
                                                                      : "interleaved";
  static constexpr std::string_view summary =
      order == Order::sequential ? "the whole gate product, then the whole up product, one fused epilogue"
      : order == Order::pingpong
          ? "as interleaved; two warpgroups alternate, one multiplies while the other finishes its tile"
          : "each tile of tokens is loaded once and multiplied by gate and up side by side";
  static constexpr Overrides overrides{.own_choice = true,
                                       .candidates = true,
                                       .work = true,
                                       .profiled = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};

  static const KnobTable<Config>& knob_table() { return fused::knob_table(); }
  static bool quantizes_in_second_pass(const ProductProblem&) { return true; }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    if (device.matrix_unit != MatrixUnit::wgmma || problem.a != problem.b || !is_16_bit(problem.a)) {
      return fmt::format("strategy {} takes fp16 with fp16 or bf16 with bf16 on a Hopper GPU, not {} with {} on {}",
                         name, thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    if (order == Order::sequential && problem.matrices() == 1) {
      return fmt::format("strategy {} multiplies by gate, then by up; a product of one matrix has no order", name);
    }
    if (problem.row_weights || (problem.bias && problem.matrices() == 2)) {
      return fmt::format("strategy {} takes no weights of rows, and no bias of gate and up", name);
    }
    return std::nullopt;
  }
  static Config own_choice(const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    Config config{.order = order,
                  .operand = number_of(problem.a),
                  .persistent = order == Order::pingpong,
                  .dependent_launch = problem.rows <= max_rows_bound_by_memory};
    set_outputs(config, problem);
    return config;
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    InfeasibleReasons found;
    check_tile(config, found);
    check_copies(problem, config, found);
    check_cluster(problem, config, device, found);
    check_order(config, found);
    check_static_memory(shape_of(config), device, found);
    check_split(shape_of(config), config.block_outputs, accumulators(config), found);
    check_registers({.shape = shape_of(config), .registers = accumulators(config) + other_registers}, device, found);
    return found.take();
  }
  static std::vector<Config> candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec& device) {
    return all_candidates(problem, own, knobs, device);
  }
  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    TiledKernel kernel = tiled_kernel(problem, {.weight_rows = config.matrices * config.block_outputs,
                                                .slot_weight_rows = slot_weights(config),
                                                .tokens = block_tokens(config),
                                                .k = config.block_k,
                                                .walks = passes(config),
                                                .stages = config.stages,
                                                .cluster = config.multicast * config.split_k,
                                                .split_k = config.split_k,
                                                .persistent = config.persistent,
                                                .tma_stores = config.epilogue == Epilogue::tma,
                                                .hides_epilogue = order == Order::pingpong,
                                                .dependent_launch = config.dependent_launch,
                                                .dram_share = dram_share(problem, config, device)});
    kernel.steps *= step_factor(problem, config);
    return {{kernel}};
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return planned_call(problem, config);
  }
  static std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Config& config, const DeviceSpec&,
                                              const ProfileRequest& request) {
    Config wanted = config;
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    return ProfiledCall{planned_call(problem, wanted), 0, shape_of(wanted)};
  }
  static std::vector<ProductProblem> edges(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    // Threads that store pairs of outputs must not store one beyond a row's last; TMA takes no such rows.
    const SampleExtents least{
        .rows = 1, .n = config.epilogue == Epilogue::simt ? 7 : 8, .k = config.split_k > 1 ? config.block_k + 8 : 8};
    return {multi_tile_sample(problem, config), with_extents(problem, least)};
  }
  static std::vector<Sample<ProductProblem>> built_in() { return samples_of<order>(default_config_list); }
  static std::vector<Sample<ProductProblem>> samples() { return samples_of<order>(small_config_list); }
};

}  // namespace
}  // namespace thresher::strategies::gemm::fused

namespace thresher::strategies::gemm {

const Strategy<ProductProblem>& interleaved_strategy() {
  return strategy_of<WithOutputQuantization<fused::Fused<fused::Order::interleaved>>>();
}
const Strategy<ProductProblem>& sequential_strategy() {
  return strategy_of<WithOutputQuantization<fused::Fused<fused::Order::sequential>>>();
}
const Strategy<ProductProblem>& pingpong_strategy() {
  return strategy_of<WithOutputQuantization<fused::Fused<fused::Order::pingpong>>>();
}

}  // namespace thresher::strategies::gemm
