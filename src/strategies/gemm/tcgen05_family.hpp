#pragma once
/// The common part of the strategies on tcgen05 on the host, whatever their operands.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/integers.hpp"
#include "machine/tensor_map.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "pipeline/tensor_shape.hpp"
#include "strategies/gemm/common_knobs.hpp"
#include "strategies/gemm/product_config.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {

/// A kernel as its limits and its work see it.
struct TensorKernelShape {
  pipeline::TensorShape shape{};
  bool dense = false;
  pipeline::TileWidths tile_widths{};
  int outputs = 128;       ///< of a tile
  int staged_tokens = 32;  ///< dense: columns that a thread loads at a time
  int slot_k = 64;         ///< elements along K
  MatrixType type = MatrixType::bits16;
};
template <class Config>
TensorKernelShape tensor_kernel_shape(const Config& config, std::uint32_t slot_k, MatrixType type) {
  return {.shape = shape_of(config),
          .dense = config.dense,
          .tile_widths = tile_widths_of(config),
          .outputs = tile_outputs(config),
          .staged_tokens = dense_chunk_tokens(config),
          .slot_k = static_cast<int>(slot_k),
          .type = type};
}

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> tensor_infeasible_reasons(const ProductProblem& problem,
                                                                 const TensorKernelShape& kernel,
                                                                 const DeviceSpec& device);

[[nodiscard]] TensorKernel tensor_work(const ProductProblem& problem, const TensorKernelShape& kernel);

/// Instructions of a slot, whose last commits it, and of an epilogue warp.
[[nodiscard]] Expectations tensor_expectations(const TensorKernelShape& kernel);

/// The program of one kernel, whose code is `folder`/device/operation.hpp.
template <class Config>
DeviceProgram tensor_program(const Config& config, std::string_view strategy, std::string_view folder,
                             std::string kernel) {
  return {.title = fmt::format("{} {}, {} outputs x {} tokens, split {}", config.dense ? "dual_gemm" : "grouped_gemm",
                               strategy, tile_outputs(config), config.block_tokens, config.split_k),
          .text = fmt::format("#include \"strategies/gemm/{}/device/operation.hpp\"\n", folder),
          .kernels = {std::move(kernel)},
          .options = {},
          .only_arch = Arch::sm_100f};
}

/// The launch of such a program, without what it reads, writes and binds.
[[nodiscard]] KernelLaunch tensor_launch(const TensorKernelShape& kernel, std::int64_t experts, DeviceProgram program,
                                         bool dependent);

/// Dimensions are listed from the innermost; it has no stride.
[[nodiscard]] machine::TensorMapDescription tensor_map(std::uint64_t address, machine::ElementType element,
                                                       machine::Swizzle swizzle,
                                                       std::initializer_list<std::uint64_t> extents,
                                                       std::initializer_list<std::uint64_t> strides,
                                                       std::initializer_list<std::uint32_t> box);

/// The widths of static tiles: one that holds all rows, and the narrower ones that a multiprocessor's loads, its
/// products and its tensor memory like best.
[[nodiscard]] std::vector<int> static_tile_widths(std::int64_t rows);

inline constexpr int max_tensor_stages = 16;

/// As many stages as shared memory and tensor memory hold, of groups beside a directory of so many experts; 0 where not
/// even one fits.
template <class Config>
constexpr int max_stages_of(Config config, std::int64_t experts) {
  for (config.stages = max_tensor_stages; config.stages > 0; --config.stages) {
    if (config.dense ? pipeline::fits(shape_of(config)) : pipeline::fits(shape_of(config), experts)) {
      break;
    }
  }
  return config.stages;
}

/// The products of a layer are of two matrices and of one, with outputs in BF16. Each has configurations for few rows
/// per expert and for many. They are as deep as a directory of 256 experts lets them be.
template <class Config>
constexpr std::array<Config, 6> default_grouped_configs() {
  constexpr std::int64_t usual_experts = 256;
  std::array<Config, 6> configs;
  std::size_t next = 0;
  for (const int matrices : {2, 1}) {
    for (const int tokens : {16, 64, 128}) {
      Config& config = configs[next++];
      config.matrices = matrices;
      config.block_tokens = tokens;
      config.stages = max_stages_of(config, usual_experts);
    }
  }
  return configs;
}

/// `own`, and the members that every Config has behind them.
template <class Config>
std::vector<Knob<Config>> tensor_knobs(std::vector<Knob<Config>> own, std::string_view stages_help) {
  const auto dense = [](const Config& config) { return config.dense; };
  const auto grouped = [](const Config& config) { return !config.dense; };
  std::vector<Knob<Config>> common{
      from_problem(flag("dense", &Config::dense, "")),
      number_knob("output", &Config::output),
      from_problem(number("matrices", &Config::matrices, {1, 2}, "")),
      activation_knob("activation", &Config::activation),
      from_problem(flag("bias", &Config::bias, "")),
      from_problem(flag("row_weights", &Config::row_weights, "")),
      from_problem(flag("gathered", &Config::gathered, "")),
      number("blocks", &Config::blocks, {1, 2}, "blocks that share a product"),
      range("block_tokens", &Config::block_tokens, 16, 256, 16, "tokens of a tile; of groups, at most"),
      only_where<Config>(grouped, number("token_step", &Config::token_step, {16, 32, 64},
                                         "of groups: between widths of more than 64 columns")),
      range("stages", &Config::stages, 1, max_tensor_stages, 1, stages_help),
      number("split_k", &Config::split_k, {1, 2}, "products of a cluster that share a tile's K and add up"),
      only_where<Config>(dense, flag("persistent", &Config::persistent,
                                     "dense: blocks take tile after tile, finishing one while they multiply the next")),
      from_problem(flag("profiled", &Config::profiled, "")),
      ablation_knob("ablation", &Config::ablation),
      of_launch(flag("dependent_launch", &Config::dependent_launch, "starts before the launch ahead has ended"))};
  std::move(common.begin(), common.end(), std::back_inserter(own));
  return own;
}

/// The base of both families. `Own` has what ProductFamily asks for, and these members:
///
/// `set_operands(config, problem)` sets what is multiplied.
/// `kernel_shape(config)` gives the shape of the kernel.
/// `grouped_widths` has the widths of groups' tiles that are worth predicting.
/// `n_granule` is for samples: the outputs of groups are a multiple of it.
template <class Own, class OfConfig>
struct TensorFamily : ProductFamily<Own, OfConfig> {
  using Config = OfConfig;

  static Config own_choice(const ProductProblem& problem, const Knobs&, const DeviceSpec&) {
    Config config;
    config.dense = has_static_tiles(problem);
    set_outputs(config, problem);
    Own::set_operands(config, problem);
    return config;
  }

  /// The ring is as deep as fits unless `knobs` ask for another.
  static std::vector<Config> candidates(const ProductProblem& problem, const Config& own, const Knobs& knobs,
                                        const DeviceSpec&) {
    std::vector<Config> found;
    for (const Config& tile : own.dense ? static_candidates(problem, own) : grouped_candidates(own)) {
      Config config = Own::knob_table().with(tile, knobs, Own::name);
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
    return tensor_infeasible_reasons(problem, Own::kernel_shape(config), device);
  }

  static pipeline::Shape profile_shape(const Config& config) { return pipeline::profile_shape(shape_of(config)); }

  /// Beyond a tile and the ring in every dimension, and few enough to be quick. A persistent block has more than one
  /// tile.
  static ProductProblem multi_tile_sample(const ProductProblem& problem, const Config& config, std::int64_t rest) {
    const std::int64_t outputs = tile_outputs(config);
    const TensorKernelShape kernel = Own::kernel_shape(config);
    if (config.dense) {
      return with_extents(problem, {.experts = 1,
                                    .rows = config.block_tokens + 1,
                                    .n = (config.persistent ? 2 : 1) * outputs + 5,
                                    .k = std::int64_t{kernel.slot_k} * (config.split_k * config.stages + 1) + rest});
    }
    return with_extents(problem, {.experts = 5,
                                  .rows = config.block_tokens * 3 / 2 + 21,
                                  .n = outputs + round_up(std::int64_t{5}, Own::n_granule),
                                  .k = std::int64_t{kernel.slot_k} * config.split_k * (config.stages + 1) + rest});
  }
  static ProductProblem smallest_sample(const ProductProblem& problem, const Config& config) {
    return with_extents(
        problem, {.experts = 3,
                  .rows = config.dense ? 1 : 2,
                  .n = config.dense ? 1 : Own::n_granule,
                  .k = std::int64_t{Own::kernel_shape(config).slot_k} * (config.split_k - 1) + Own::k_granule(config)});
  }

 private:
  static std::vector<Config> static_candidates(const ProductProblem& problem, const Config& own) {
    std::vector<Config> found;
    for (const int tokens : static_tile_widths(problem.rows)) {
      for (const int blocks : {2, 1}) {
        Config config = own;
        config.block_tokens = tokens;
        config.blocks = blocks;
        found.push_back(config);
        config.split_k = 2;
        found.push_back(config);
        config.split_k = 1;
        config.persistent = true;
        found.push_back(config);
      }
    }
    return found;
  }

  /// Widths that hold an expert's rows in one tile or few; with a split k range, for few tiles.
  static std::vector<Config> grouped_candidates(const Config& own) {
    std::vector<Config> found;
    for (const int blocks : {2, 1}) {
      for (const int tokens : Own::grouped_widths) {
        Config config = own;
        config.block_tokens = tokens;
        config.blocks = blocks;
        found.push_back(config);
        if (tokens <= static_cast<int>(pipeline::max_split_columns)) {
          config.split_k = 2;
          found.push_back(config);
        }
      }
    }
    return found;
  }
};

}  // namespace thresher::strategies::gemm
