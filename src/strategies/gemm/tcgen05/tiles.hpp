#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/integers.hpp"
#include "pipeline/grouped/tensor_groups.hpp"
#include "strategies/gemm/tcgen05/config.hpp"

namespace thresher::strategies::gemm::tcgen05 {

inline constexpr int max_stages = 16;

/// As many stages as shared memory and tensor memory hold, of groups beside a directory of so many experts; 0 where not
/// even one fits.
constexpr int max_stages_of(Config config, std::int64_t experts) {
  for (config.stages = max_stages; config.stages > 0; --config.stages) {
    if (config.dense ? pipeline::fits(shape_of(config)) : pipeline::fits(shape_of(config), experts)) {
      break;
    }
  }
  return config.stages;
}

// --- worth predicting

/// The widths of static tiles: one that holds all rows, and the narrower ones that a multiprocessor's loads, its
/// products and its tensor memory like best.
inline std::vector<int> static_tile_widths(std::int64_t rows) {
  constexpr std::int64_t granule = 16;
  constexpr std::int64_t max_tokens = 256;
  const auto all = static_cast<int>(std::min(max_tokens, round_up(rows, granule)));
  std::vector<int> widths{std::max(static_cast<int>(granule), all)};
  for (const int tokens : {64, 96, 128, 192}) {
    if (tokens < all) {
      widths.push_back(tokens);
    }
  }
  return widths;
}

inline std::vector<Config> static_candidates(const Config& own, std::int64_t rows) {
  std::vector<Config> found;
  for (const int tokens : static_tile_widths(rows)) {
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
inline std::vector<Config> grouped_candidates(const Config& own) {
  std::vector<int> widths{16, 32, 64, 96, 128, 160};
  if (!own.nvfp4) {
    widths.insert(widths.end(), {192, 256});
  }
  std::vector<Config> found;
  for (const int blocks : {2, 1}) {
    for (const int tokens : widths) {
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

// --- compiled ahead of time

/// Those that the planner chooses for dense problems of NVFP4 with few and with many tokens.
inline std::vector<Config> default_dense_configs() {
  std::vector<Config> found;
  for (const Number output : {Number::fp16, Number::bf16}) {
    for (const int tokens : {16, 32, 64, 128, 192, 256}) {
      found.push_back({.nvfp4 = true, .dense = true, .output = output, .block_tokens = tokens});
    }
    found.push_back({.nvfp4 = true, .dense = true, .output = output, .block_tokens = 128, .persistent = true});
  }
  return found;
}

/// The products of a layer are of two matrices and of one, with outputs in BF16. Each has configurations for few rows
/// per expert and for many. Products of FP16 and dense ones of plain operands are compiled where they are used.
inline std::vector<Config> default_configs(bool is_nvfp4) {
  constexpr std::int64_t usual_experts = 256;
  std::vector<Config> found = is_nvfp4 ? default_dense_configs() : std::vector<Config>{};
  for (const int matrices : {2, 1}) {
    for (const int tokens : {16, 64, 128}) {
      found.push_back({.nvfp4 = is_nvfp4, .matrices = matrices, .block_tokens = tokens});
    }
  }
  for (Config& config : found) {
    config.stages = max_stages_of(config, usual_experts);
  }
  return found;
}

// --- for the emulator: between them every knob

constexpr Config fp8(Scaling tokens, Scaling weights, Config config) {
  config.operand = Number::e4m3;
  config.token_scaling = tokens;
  config.weight_scaling = weights;
  return config;
}

inline constexpr std::array small_plain_configs{
    Config{.dense = true, .blocks = 2, .block_tokens = 48, .stages = 2},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 3},
    Config{.operand = Number::fp16,
           .dense = true,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
    Config{.operand = Number::fp16, .dense = true, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2},
    fp8(Scaling::row, Scaling::row, {.dense = true, .blocks = 2, .block_tokens = 48, .stages = 2}),
    fp8(Scaling::tensor, Scaling::tensor,
        {.dense = true, .output = Number::fp16, .blocks = 1, .block_tokens = 32, .stages = 2, .persistent = true}),
    fp8(Scaling::row, Scaling::tensor,
        {.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 16, .stages = 2, .split_k = 2}),
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
           .activation = ActivationCode::situ,
           .row_weights = true,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .dependent_launch = false},
    Config{.matrices = 1,
           .activation = ActivationCode::relu2,
           .blocks = 1,
           .block_tokens = 160,
           .token_step = 32,
           .stages = 2},
    Config{.row_weights = true, .gathered = true, .blocks = 2, .block_tokens = 32, .stages = 2, .split_k = 2},
    Config{.output = Number::fp32, .bias = true, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
    fp8(Scaling::tensor, Scaling::tensor, {.blocks = 2, .block_tokens = 32, .stages = 2}),
    fp8(Scaling::row, Scaling::row,
        {.output = Number::fp16,
         .activation = ActivationCode::swiglu_clamped,
         .bias = true,
         .gathered = true,
         .blocks = 2,
         .block_tokens = 64,
         .stages = 2}),
    fp8(Scaling::row, Scaling::tensor,
        {.output = Number::fp32, .matrices = 1, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2}),
    fp8(Scaling::tensor, Scaling::row, {.row_weights = true, .blocks = 1, .block_tokens = 96, .stages = 2}),
};

inline constexpr auto small_nvfp4_configs = [] {
  std::array configs{
      Config{.dense = true,
             .output = Number::fp16,
             .activation = ActivationCode::gelu_tanh,
             .blocks = 2,
             .block_tokens = 32,
             .stages = 2},
      Config{.dense = true, .output = Number::bf16, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
      Config{.dense = true, .output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
      Config{.dense = true,
             .output = Number::fp16,
             .activation = ActivationCode::swiglu_clamped,
             .blocks = 2,
             .block_tokens = 16,
             .stages = 2,
             .persistent = true},
      Config{.unsigned_scales = true,
             .dense = true,
             .output = Number::fp16,
             .blocks = 2,
             .block_tokens = 144,
             .stages = 2},
      Config{.blocks = 1, .block_tokens = 32, .stages = 2},
      Config{.output = Number::fp32,
             .activation = ActivationCode::swiglu_clamped,
             .bias = true,
             .gathered = true,
             .blocks = 2,
             .block_tokens = 96,
             .token_step = 16,
             .stages = 3},
      Config{.matrices = 1, .bias = true, .row_weights = true, .blocks = 2, .block_tokens = 64, .stages = 2},
      Config{.output = Number::fp16,
             .activation = ActivationCode::gelu_tanh,
             .row_weights = true,
             .blocks = 2,
             .block_tokens = 160,
             .token_step = 32,
             .stages = 2,
             .dependent_launch = false},
      Config{.bias = true, .row_weights = true, .blocks = 2, .block_tokens = 32, .stages = 2, .split_k = 2},
      Config{.output = Number::fp32, .matrices = 1, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2},
  };
  for (Config& config : configs) {
    config.nvfp4 = true;
  }
  return configs;
}();

}  // namespace thresher::strategies::gemm::tcgen05
