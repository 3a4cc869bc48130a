#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/dual_gemm/tcgen05_sixteen_bit/config.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {

inline constexpr int token_granule = 16;
inline constexpr int most_tokens = 256;
inline constexpr int most_stages = 16;

/// As many slots as shared memory holds; 0 where not even one fits, or the sums do not fit into tensor memory.
constexpr int most_stages_of(Config config) {
  for (config.stages = most_stages; config.stages > 0; --config.stages) {
    if (pipeline::fits(shape_of(config))) {
      return config.stages;
    }
  }
  return 0;
}

/// For `m` tokens: tiles that hold them all, or the widths that products and loads like best.
inline std::vector<Config> candidates(std::int64_t m) {
  const auto all =
      static_cast<int>(std::min<std::int64_t>(most_tokens, (m + token_granule - 1) / token_granule * token_granule));
  std::vector<int> widths{std::max(token_granule, all)};
  for (const int tokens : {64, 96, 128, 192}) {
    if (tokens < all) {
      widths.push_back(tokens);
    }
  }
  std::vector<Config> found;
  for (const int tokens : widths) {
    for (const int blocks : {2, 1}) {
      for (const bool persistent : {false, true}) {
        found.push_back({.blocks = blocks, .block_tokens = tokens, .persistent = persistent});
      }
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
};

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
