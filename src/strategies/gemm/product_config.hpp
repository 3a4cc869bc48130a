#pragma once
/// The members that configurations of product kernels share, and what families of such kernels have in common.
#include <optional>
#include <utility>
#include <vector>

#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::gemm {

/// The dense dual GEMM has kernels with static tiles. Every other product runs as one of groups.
inline bool has_static_tiles(const ProductProblem& problem) {
  return problem.is_dense() && problem.matrices() == 2 && !problem.bias && !problem.row_weights;
}

/// Up to so many dense rows static tiles of one group are tried.
inline constexpr std::int64_t max_static_rows = 256;
inline bool tries_static_tiles(const ProductProblem& problem) {
  return problem.is_dense() && problem.rows <= max_static_rows;
}

/// Configurations that take rows of groups; those of dense rows alone have no such members.
template <class Config>
concept TakesGroups = requires(Config config) {
  config.row_weights;
  config.gathered;
};

/// Sets what a problem decides about outputs, and whether rows are gathered.
template <class Config>
void set_outputs(Config& config, const ProductProblem& problem) {
  config.output = number_of(problem.out);
  config.matrices = problem.matrices();
  config.activation = problem.activation ? code_of(problem.activation->kind) : ActivationCode::silu;
  config.bias = problem.bias;
  if constexpr (TakesGroups<Config>) {
    config.row_weights = problem.row_weights;
    config.gathered = problem.layout == ProductRows::gathered;
  }
}

/// How the rows of a configuration for groups lie in its samples.
template <TakesGroups Config>
ProductRows grouped_rows(const Config& config) {
  if constexpr (requires { config.static_tiles; }) {
    if (config.static_tiles) {
      return ProductRows::dense;
    }
  }
  return config.gathered ? ProductRows::gathered : ProductRows::contiguous;
}

/// The problem of a configuration for these operands and rows, without extents.
template <class Config>
ProductProblem problem_of(const Config& config, const OperandFormats& operands, ProductRows layout) {
  ProductProblem problem;
  problem.layout = layout;
  problem.a = operands.tokens;
  problem.b = operands.weights;
  problem.out = format_of(config.output);
  problem.bias = config.bias;
  if constexpr (TakesGroups<Config>) {
    problem.row_weights = config.row_weights;
  }
  if (config.matrices == 2 || config.activation == ActivationCode::relu2) {
    problem.activation = usual_activation(kind_of(config.activation));
  }
  return problem;
}

/// The base of families whose configurations are `dense`, with static tiles, or have groups. `Own` has what
/// KernelFamily asks for, and these members:
///
/// `formats(config)` gives the formats of tokens and weights.
/// `multi_tile_sample(problem, config, rest)` gives a sample whose K ends `rest` behind whole stage buffers.
/// `smallest_sample(problem, config)` gives the smallest sample.
/// `k_granule(config)` gives the least rest.
/// `profile_shape(config)` gives the shape of a dense kernel.
/// `default_configs()` gives those compiled ahead.
/// `small_configs()` gives those for the emulator.
template <class Own, class OfConfig>
struct ProductFamily : FamilyDefaults<ProductProblem, OfConfig> {
  using Config = OfConfig;
  static constexpr Overrides overrides{.own_choice = true,
                                       .candidates = true,
                                       .work = true,
                                       .profiled = true,
                                       .edges = true,
                                       .built_in = true,
                                       .samples = true};

  static std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Config& config,
                                              const DeviceSpec& device, const ProfileRequest& request) {
    if (!config.dense) {
      return std::nullopt;
    }
    Config wanted = config;
    wanted.profiled = request.timestamps;
    wanted.ablation = request.ablation;
    PlannedCall call = Own::plan(problem, wanted, device);
    const std::size_t step = call.preparation_steps;
    return ProfiledCall{std::move(call), step, Own::profile_shape(wanted)};
  }

  /// With a rest along K in the last slot, for static tiles also without one, and as small as there are.
  static std::vector<ProductProblem> edges(const ProductProblem& problem, const Config& config, const DeviceSpec&) {
    std::vector<ProductProblem> found{Own::multi_tile_sample(problem, config, Own::k_granule(config))};
    if (config.dense) {
      found.push_back(Own::multi_tile_sample(problem, config, 0));
    }
    found.push_back(Own::smallest_sample(problem, config));
    return found;
  }

  static std::vector<Sample<ProductProblem>> built_in() { return samples_of(Own::default_configs()); }
  static std::vector<Sample<ProductProblem>> samples() { return samples_of(Own::small_configs()); }

 private:
  template <class Configs>
  static std::vector<Sample<ProductProblem>> samples_of(const Configs& configs) {
    std::vector<Sample<ProductProblem>> found;
    for (const Config& config : configs) {
      const ProductRows layout = config.dense ? ProductRows::dense : grouped_rows(config);
      const ProductProblem problem = problem_of(config, Own::formats(config), layout);
      found.push_back(
          {Own::multi_tile_sample(problem, config, Own::k_granule(config)), Own::knob_table().knobs(config)});
    }
    return found;
  }
};

}  // namespace thresher::strategies::gemm
