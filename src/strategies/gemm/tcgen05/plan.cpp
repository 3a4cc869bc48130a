// The strategies tcgen05 and tcgen05_plain: the problems that they take, the work of a configuration, and its samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "strategies/gemm/gather.hpp"
#include "strategies/gemm/infeasible.hpp"
#include "strategies/gemm/product_config.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/tcgen05/kernel.hpp"
#include "strategies/gemm/tcgen05/tiles.hpp"
#include "strategies/gemm/work.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {
namespace tcgen05 {
namespace {

// --- infeasible configurations

void check_split(const Config& config, std::int64_t k, InfeasibleReasons& found) {
  const int parts = config.split_k;
  if (const std::int64_t steps = ceil_div(k, std::int64_t{slot_k(config)}); parts > steps) {
    found.say("split-K: k = {} is {} stage{} of {}, too few for {} parts", k, steps, steps == 1 ? "" : "s",
              slot_k(config), parts);
  }
  if (parts > 1 && config.dense && config.persistent) {
    found.say("split-K: a persistent block takes whole tiles, not one of {} parts", parts);
  }
  if (parts > 1 && !config.dense && config.block_tokens > static_cast<int>(pipeline::max_split_columns)) {
    found.say("split-K: {} tokens are over the {} whose partial sums a thread holds in registers", config.block_tokens,
              pipeline::max_split_columns);
  }
}

void check_columns(const pipeline::TensorShape& shape, int limit, InfeasibleReasons& found) {
  const int used = pipeline::used_columns(shape);
  if (used <= limit) {
    return;
  }
  if (shape.scale_columns > 0) {
    found.say(
        "tensor memory: {} columns ({} for sums and {} for the scales of each of {} stages) are over the limit of {}",
        used, shape.sums * shape.sum_columns, shape.scale_columns, shape.stages, limit);
  } else {
    found.say("tensor memory: {} columns ({} for the sums of a tile{}) are over the limit of {}", used,
              shape.sum_columns, shape.sums == 1 ? "" : ", twice", limit);
  }
}

void check_memory(const Config& config, std::int64_t experts, int limit, InfeasibleReasons& found) {
  if (const int bytes = block_bytes(config, experts); bytes > limit) {
    const std::string directory = config.dense ? ""
                                               : fmt::format(", a directory of {} experts",
                                                             std::min<std::int64_t>(experts, pipeline::max_groups));
    found.say("shared memory: {} bytes a block ({} stages of {}{}) are over the limit of {} ({} KiB)", bytes,
              config.stages, slot_bytes(config), directory, limit, limit / 1024);
  }
}

// --- work

/// Tiles of a usual call.
std::int64_t usual_tiles(const ProductProblem& problem, const Config& config) {
  const std::int64_t column_tiles = ceil_div(problem.n, std::int64_t{tile_outputs(config)});
  if (config.dense) {
    return ceil_div(problem.rows, std::int64_t{config.block_tokens}) * column_tiles;
  }
  const double row_tiles = usual_row_tiles(problem, tile_widths_of(config)).count;
  return static_cast<std::int64_t>(std::ceil(active_experts(problem) * row_tiles * static_cast<double>(column_tiles)));
}

/// Columns of a tile in a usual call.
double usual_columns(const ProductProblem& problem, const Config& config) {
  return config.dense ? config.block_tokens : usual_row_tiles(problem, tile_widths_of(config)).columns;
}

/// The work of one tile.
TensorTiles tile_work(const ProductProblem& problem, const Config& config) {
  const pipeline::TensorShape shape = shape_of(config);
  const int blocks = pipeline::group_blocks(shape);
  const double columns = usual_columns(problem, config);
  const double loaded = columns / blocks;
  const auto steps = static_cast<double>(ceil_div(problem.k, std::int64_t{slot_k(config)}));
  constexpr double bytes_of_sum = 4;
  TensorTiles tiles;
  tiles.count = usual_tiles(problem, config);
  tiles.steps = std::ceil(steps / shape.split_groups);
  tiles.products = accumulators(config) * slot_products;
  tiles.product_operations = 2.0 * block_rows * columns * slot_k(config) / slot_products;
  tiles.operand_bytes = (block_rows + loaded) * slot_row_bytes / slot_products;
  tiles.l2_bytes = shape.slot_bytes - static_cast<int>(token_bytes(config)) + loaded * slot_row_bytes;
  tiles.tensor_memory_bytes = accumulators(config) * bytes_of_sum * block_rows * columns;
  tiles.epilogue =
      epilogue_work(problem, static_cast<double>(tile_outputs(config)) / blocks * columns / shape.split_groups);
  return tiles;
}

TensorKernel tensor_work(const ProductProblem& problem, const Config& config) {
  const pipeline::TensorShape shape = shape_of(config);
  const TensorTiles tiles = tile_work(problem, config);
  const int blocks = pipeline::group_blocks(shape);
  const auto steps = static_cast<double>(ceil_div(problem.k, std::int64_t{slot_k(config)}));
  const double computed = static_cast<double>(tiles.count) * blocks * steps * tiles.products * tiles.product_operations;
  TensorKernel work;
  work.tiles = {tiles};
  work.matrix_type = config.nvfp4 ? MatrixType::nvfp4 : matrix_type(config.operand);
  work.pairs = blocks == 2;
  work.cluster = pipeline::cluster_blocks(shape);
  work.loads_in_flight = loads_in_flight(shape.stages);
  work.exchange_clocks = exchange_clocks(tiles.tensor_memory_bytes, shape.split_groups);
  work.persistent = shape.persistent;
  work.dram_bytes = compulsory_bytes(problem);
  work.useful_share = std::min(1.0, useful_operations(problem) / computed);
  return work;
}

/// Adds the work ahead of the product.
void add_preparation(const ProductProblem& problem, const Config& config, WorkModel& work) {
  if (!config.nvfp4) {
    if (config.gathered) {
      work.parts.emplace_back(gathering_work(problem));
    }
  } else if (block_scaled::prepares(problem, config)) {
    const double elements = usual_rows(problem) * static_cast<double>(problem.k);
    work.parts.emplace_back(MemoryPass{config.dense ? "preparing the tokens" : "preparing the rows",
                                       2 * elements * stored_bits(problem.a) / 8, true});
  }
}

WorkModel work_of(const ProductProblem& problem, const Config& config) {
  WorkModel work;
  add_preparation(problem, config, work);
  TensorKernel kernel = tensor_work(problem, config);
  if (!config.nvfp4 && !config.dense) {
    kernel.dram_bytes += bytes_read_again(problem, usual_row_tiles(problem, tile_widths_of(config)));
  }
  work.parts.emplace_back(kernel);
  return work;
}

// --- the family

bool takes_plain(const ProductProblem& problem) {
  return (is_16_bit(problem.a) && problem.a == problem.b) || (is_plain_fp8(problem.a) && is_plain_fp8(problem.b));
}

template <bool is_nvfp4>
struct Family : ProductFamily<Family<is_nvfp4>, Config> {
  static constexpr Overrides overrides = [] {
    Overrides own = ProductFamily<Family, Config>::overrides;
    own.role = true;
    return own;
  }();
  static constexpr std::string_view name = is_nvfp4 ? "tcgen05" : "tcgen05_plain";
  static constexpr std::string_view summary =
      is_nvfp4
          ? "NVFP4 tokens and weights, of all experts too, as they are on Blackwell's tensor cores, sums in tensor "
            "memory"
          : "16-bit or FP8 tokens and weights, of all experts too, where they lie on Blackwell's tensor cores, sums in "
            "tensor memory";

  static const KnobTable<Config>& knob_table() { return tcgen05::knob_table(is_nvfp4); }

  /// The library's dense products of 16 bits are known to be right on such cards; this has run on none.
  static Role role(const ProductProblem& problem) {
    return is_16_bit(problem.a) && has_static_tiles(problem) ? Role::by_name : Role::competes;
  }

  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec& device) {
    const bool takes = is_nvfp4 ? problem.a == Format::nvfp4 && problem.b == Format::nvfp4 : takes_plain(problem);
    if (!takes || device.matrix_unit != MatrixUnit::tcgen05) {
      return fmt::format("strategy {} needs {} a Blackwell GPU, not {} with {} on {}", name,
                         is_nvfp4 ? "nvfp4 tokens, nvfp4 weights and"
                                  : "fp16 with fp16, bf16 with bf16, or fp8_tensor or fp8_row with either, and",
                         thresher::name(problem.a), thresher::name(problem.b), device.name);
    }
    return cannot_quantize_output(name, problem.out);
  }

  static Config own_choice(const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    Config config{.nvfp4 = is_nvfp4, .dense = has_static_tiles(problem)};
    if (!is_nvfp4) {
      config.operand = number_of(problem.a);
      config.token_scaling = scaling_of(problem.a);
      config.weight_scaling = scaling_of(problem.b);
    }
    set_outputs(config, problem);
    return config;
  }

  /// The ring is as deep as fits unless `knobs` ask for another.
  static std::vector<Config> candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec&) {
    std::vector<Config> found;
    for (const Config& tile : own.dense ? static_candidates(own, problem.rows) : grouped_candidates(own)) {
      Config config = knob_table().with(tile, knobs, name);
      if (knobs.find("stages") == nullptr) {
        config.stages = max_stages_of(config, problem.experts);
      }
      if (config.stages > 0) {
        found.push_back(config);
      }
    }
    return found;
  }

  static std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                     const DeviceSpec& device) {
    InfeasibleReasons found;
    if (!config.dense) {
      check_groups(problem, tile_widths_of(config), tile_outputs(config), found);
    }
    check_split(config, problem.k, found);
    check_columns(shape_of(config), device.tensor_memory_columns, found);
    check_memory(config, problem.experts, device.shared_bytes_per_block, found);
    // Every multiprocessor holds one block.
    if (const int blocks = pipeline::cluster_blocks(shape_of(config)); device.resident_blocks(blocks, 1) < blocks) {
      found.say("cluster: {} blocks with a multiprocessor each have no room on {} multiprocessors", blocks,
                device.multiprocessors);
    }
    return found.take();
  }

  static WorkModel work(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    return work_of(problem, config);
  }
  static PlannedCall plan(const ProductProblem& problem, const Config& config, const DeviceSpec& device) {
    return planned_call(problem, config, device.multiprocessors);
  }
  static pipeline::Shape profile_shape(const Config& config) { return pipeline::profile_shape(shape_of(config)); }

  static OperandFormats formats(const Config& config) {
    return is_nvfp4 ? OperandFormats{Format::nvfp4, Format::nvfp4}
                    : OperandFormats{format_of(config.operand, config.token_scaling),
                                     format_of(config.operand, config.weight_scaling)};
  }
  /// Rows of plain operands end where TMA can tell.
  static std::int64_t k_granule(const Config& config) {
    return is_nvfp4 ? 16 : tma_alignment_bytes / element_bytes(config.operand);
  }
  static constexpr std::int64_t n_granule = is_nvfp4 ? 1 : 8;  ///< of groups

  /// Beyond a tile and the ring in every dimension, and few enough to be quick. A persistent block has more than one
  /// tile.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const std::int64_t outputs = tile_outputs(config);
    const std::int64_t stage_k = slot_k(config);
    if (config.dense) {
      return with_extents(problem, {.experts = 1,
                                    .rows = config.block_tokens + 1,
                                    .n = (config.persistent ? 2 : 1) * outputs + 5,
                                    .k = stage_k * (config.split_k * config.stages + 1) + rest});
    }
    return with_extents(problem, {.experts = 5,
                                  .rows = config.block_tokens * 3 / 2 + 21,
                                  .n = outputs + round_up(std::int64_t{5}, n_granule),
                                  .k = stage_k * config.split_k * (config.stages + 1) + rest});
  }
  static ProductProblem smallest_sample(const ProductProblem& problem, const Config& config) {
    return with_extents(problem, {.experts = 3,
                                  .rows = config.dense ? 1 : 2,
                                  .n = config.dense ? 1 : n_granule,
                                  .k = std::int64_t{slot_k(config)} * (config.split_k - 1) + k_granule(config)});
  }

  static std::vector<Config> default_configs() { return tcgen05::default_configs(is_nvfp4); }
  static std::span<const Config> small_configs() {
    return is_nvfp4 ? std::span<const Config>(small_nvfp4_configs) : small_plain_configs;
  }
};

}  // namespace
}  // namespace tcgen05

const Strategy<ProductProblem>& tcgen05_strategy() { return strategy_of<tcgen05::Family<true>>(); }
const Strategy<ProductProblem>& tcgen05_plain_strategy() { return strategy_of<tcgen05::Family<false>>(); }

}  // namespace thresher::strategies::gemm
