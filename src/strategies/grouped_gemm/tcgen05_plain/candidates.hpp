#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "pipeline/grouped/tensor_groups.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/config.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

inline constexpr int max_stages = 16;

/// As many slots as shared memory holds beside a directory of so many experts; 0 where not even one fits.
constexpr int max_stages_of(Config config, std::int64_t experts) {
  config.stages = max_stages;
  while (config.stages > 0 && !pipeline::fits(shape_of(config), experts)) {
    --config.stages;
  }
  return config.stages;
}

/// Widths that hold an expert's rows in one tile or few; of gate and up two pairs of accumulators have room for 128;
/// with a split k range, for few tiles. How deep the ring is follows from the rest.
inline std::vector<Config> candidates(const ProductProblem& problem) {
  std::vector<Config> found;
  const auto add = [&](Config config) {
    config.stages = max_stages_of(config, problem.experts);
    if (config.stages > 0) {
      found.push_back(config);
    }
  };
  for (const int blocks : {2, 1}) {
    for (const int tokens : {16, 32, 64, 96, 128, 160, 192, 256}) {
      Config config{.matrices = problem.activation ? 2 : 1, .blocks = blocks, .block_tokens = tokens};
      add(config);
      if (tokens <= static_cast<int>(pipeline::max_split_columns)) {
        config.split_k = 2;
        add(config);
      }
    }
  }
  return found;
}

/// Both products of a layer in BF16, for few rows an expert and for many; as deep as a directory of 256 experts lets
/// them be. FP16 is compiled where it is used.
inline constexpr auto default_config_list = [] {
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
}();

/// Between them every knob, for the emulator.
inline constexpr std::array small_config_list{
    Config{.blocks = 1, .block_tokens = 32, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .blocks = 2,
           .block_tokens = 96,
           .stages = 3},
    Config{.matrices = 1, .bias = true, .row_weights = true, .blocks = 2, .block_tokens = 64, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .row_weights = true,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .dependent_launch = false},
    Config{.matrices = 1, .blocks = 1, .block_tokens = 160, .token_step = 32, .stages = 2},
    Config{.row_weights = true, .gathered = true, .blocks = 2, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.output = Number::fp32, .bias = true, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .blocks = 2,
           .block_tokens = 64,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .output = Number::fp32,
           .matrices = 1,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 2,
           .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .row_weights = true,
           .blocks = 1,
           .block_tokens = 96,
           .stages = 2},
};

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
