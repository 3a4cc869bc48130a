#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/dual_gemm/host/tensor_tiles.hpp"
#include "strategies/dual_gemm/tcgen05/config.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// For `m` tokens. How deep the ring is follows from the rest.
inline std::vector<Config> candidates(std::int64_t m) {
  std::vector<Config> found;
  for (const int tokens : token_widths(m)) {
    for (const int blocks : {2, 1}) {
      found.push_back({.blocks = blocks, .block_tokens = tokens});
      found.push_back({.blocks = blocks, .block_tokens = tokens, .split_k = 2});
      found.push_back({.blocks = blocks, .block_tokens = tokens, .persistent = true});
    }
  }
  return found;
}

/// What the planner chooses of problems with few and with many tokens, with outputs in fp16 and bf16.
inline std::vector<Config> default_configs() {
  std::vector<Config> found;
  for (const Number output : {Number::fp16, Number::bf16}) {
    for (const int tokens : {16, 32, 64, 128, 192, 256}) {
      Config config{.output = output, .block_tokens = tokens};
      config.stages = max_stages_of(config);
      found.push_back(config);
    }
    Config many{.output = output, .block_tokens = 128, .persistent = true};
    many.stages = max_stages_of(many);
    found.push_back(many);
  }
  return found;
}

/// Between them every knob, for the emulator.
inline constexpr std::array small_config_list{
    Config{.activation = ActivationCode::gelu_tanh, .blocks = 2, .block_tokens = 32, .stages = 2},
    Config{.output = Number::bf16, .blocks = 1, .block_tokens = 16, .stages = 3, .split_k = 2},
    Config{.output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
    Config{
        .activation = ActivationCode::swiglu_clamped, .blocks = 2, .block_tokens = 16, .stages = 2, .persistent = true},
    Config{.blocks = 2, .block_tokens = 144, .stages = 2, .unsigned_scales = true},
};

}  // namespace thresher::strategies::dual_gemm::tcgen05
