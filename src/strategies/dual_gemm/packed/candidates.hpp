#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/dual_gemm/packed/config.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Small numbers of tokens: two thread blocks a multiprocessor hide each other's waits.
constexpr Config decode(Numerics numerics, int tokens) {
  Config config{.numerics = numerics,
                .math_warpgroups = 2,
                .block_tokens = tokens,
                .blocks_per_slot = numerics == Numerics::exact ? 4
                                   : tokens == 64              ? 2
                                                               : 1,
                .blocks_resident = 2,
                .overlap = Overlap::none};
  config.stages = numerics == Numerics::fast ? (tokens == 8    ? 10
                                                : tokens == 64 ? 3
                                                               : 8)
                  : tokens <= 16             ? 4
                  : tokens == 32             ? 3
                                             : 2;
  return config;
}

/// Registers are handed over only where the sums need it: without that, the blocks that prepare the next call's tokens
/// fit beside this one.
constexpr Config prefill_exact(int warpgroups, int tokens, int split) {
  Config config{.math_warpgroups = warpgroups, .block_tokens = tokens, .blocks_per_slot = 2, .split_k = split};
  config.stages = tokens == 256 ? 3 : warpgroups == 3 ? 4 : 5;
  config.math_registers = tokens == 256 ? 240 : 0;
  config.loader_registers = tokens == 256 ? 24 : 0;
  return config;
}

constexpr Config prefill_fast(int warpgroups, int tokens, int split) {
  Config config{.numerics = Numerics::fast,
                .math_warpgroups = warpgroups,
                .block_tokens = tokens,
                .blocks_per_slot = tokens == 256 ? 1 : 2,
                .split_k = split,
                .overlap = usual_overlap(Numerics::fast, warpgroups, tokens, 1)};
  config.stages = tokens == 256 ? 5 : warpgroups == 3 ? 3 : 4;
  config.math_registers = tokens == 256 ? 240 : 0;
  config.loader_registers = tokens == 256 ? 24 : 0;
  return config;
}

constexpr Config prefill(Numerics numerics, int warpgroups, int tokens, int split) {
  return numerics == Numerics::fast ? prefill_fast(warpgroups, tokens, split)
                                    : prefill_exact(warpgroups, tokens, split);
}

constexpr auto candidate_tiles(Numerics numerics) {
  return std::array{decode(numerics, 8),          decode(numerics, 16),         decode(numerics, 32),
                    decode(numerics, 64),         prefill(numerics, 2, 128, 1), prefill(numerics, 3, 128, 1),
                    prefill(numerics, 2, 256, 1), prefill(numerics, 2, 128, 2), prefill(numerics, 3, 128, 2),
                    prefill(numerics, 2, 256, 2)};
}

/// Those for `m` tokens: with few, the smallest tile that holds them all.
inline std::vector<Config> candidates(Numerics numerics, std::int64_t m) {
  for (const int tokens : {8, 16, 32, 64}) {
    if (m <= tokens) {
      return {decode(numerics, tokens)};
    }
  }
  std::vector<Config> all;
  for (const int split : {1, 2}) {
    all.push_back(prefill(numerics, 2, 128, split));
    all.push_back(prefill(numerics, 3, 128, split));
    if (m > 128) {
      all.push_back(prefill(numerics, 2, 256, split));
    }
  }
  return all;
}

/// Each of them in both paths, with outputs in fp16 and bf16, and for the exact path such tokens too.
inline constexpr auto default_config_list = [] {
  std::array<Config, 4 * candidate_tiles(Numerics::exact).size()> configs;
  std::size_t next = 0;
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    for (const Config& tile : candidate_tiles(numerics)) {
      for (const Number number : {Number::fp16, Number::bf16}) {
        configs[next] = tile;
        configs[next].operand = numerics == Numerics::exact ? number : Number::fp16;
        configs[next].output = number;
        ++next;
      }
    }
  }
  return configs;
}();

/// Small tiles of both numerics and every overlap, for the emulator.
inline constexpr std::array small_config_list{
    Config{.math_warpgroups = 2, .block_tokens = 8, .blocks_per_slot = 4, .stages = 2, .overlap = Overlap::none},
    Config{.math_warpgroups = 2, .block_tokens = 32, .blocks_per_slot = 2, .stages = 3, .overlap = Overlap::step},
    Config{.operand = Number::bf16,
           .output = Number::bf16,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::block},
    Config{.output = Number::fp32,
           .activation = ActivationCode::gelu_tanh,
           .math_warpgroups = 2,
           .block_tokens = 64,
           .blocks_per_slot = 2,
           .stages = 3,
           .split_k = 2,
           .overlap = Overlap::step,
           .loader_registers = 40,
           .math_registers = 216},
    Config{.numerics = Numerics::fast,
           .math_warpgroups = 2,
           .block_tokens = 8,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::none},
    Config{.numerics = Numerics::fast, .math_warpgroups = 2, .block_tokens = 32, .blocks_per_slot = 1, .stages = 4},
    Config{.numerics = Numerics::fast,
           .output = Number::bf16,
           .activation = ActivationCode::swiglu_clamped,
           .math_warpgroups = 3,
           .block_tokens = 64,
           .blocks_per_slot = 1,
           .stages = 3,
           .split_k = 2,
           .loader_registers = 24,
           .math_registers = 160},
    Config{.numerics = Numerics::fast,
           .output = Number::fp32,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::block},
};

}  // namespace thresher::strategies::dual_gemm::packed
