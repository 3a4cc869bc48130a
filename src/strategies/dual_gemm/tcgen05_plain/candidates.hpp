#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/dual_gemm/host/tensor_tiles.hpp"
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

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

/// Between them every knob, for the emulator.
inline constexpr std::array small_config_list{
    Config{.blocks = 2, .block_tokens = 48, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .blocks = 1,
           .block_tokens = 16,
           .stages = 3},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::gelu_tanh,
           .blocks = 2,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.output = Number::fp32, .blocks = 2, .block_tokens = 48, .stages = 2, .split_k = 2},
    Config{.operand = Number::fp16, .blocks = 1, .block_tokens = 16, .stages = 2, .split_k = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .blocks = 2,
           .block_tokens = 48,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .output = Number::fp16,
           .blocks = 1,
           .block_tokens = 32,
           .stages = 2,
           .persistent = true},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .output = Number::fp32,
           .blocks = 2,
           .block_tokens = 16,
           .stages = 2,
           .split_k = 2},
};

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
