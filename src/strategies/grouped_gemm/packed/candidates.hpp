#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <array>

#include "strategies/grouped_gemm/packed/config.hpp"

namespace thresher::strategies::grouped_gemm::packed {

/// Groups of few rows: two thread blocks a multiprocessor hide each other's waits. One matrix alone stages twice the
/// outputs, which cost the longest slots one of theirs.
constexpr Config decode_tile(Numerics numerics, int matrices, int tokens) {
  const bool is_fast = numerics == Numerics::fast;
  Config config{.numerics = numerics,
                .matrices = matrices,
                .block_tokens = tokens,
                .blocks_per_slot = !is_fast && tokens <= 16 ? 4 : 2,
                .blocks_resident = 2,
                .overlap = Overlap::none};
  config.stages = is_fast ? (tokens <= 16 ? 4 : 3) : tokens <= 16 && matrices == 1 ? 3 : 4;
  return config;
}

/// Whose rungs end where conversion takes longer than products anyway. With more of them than these in one kernel the
/// compiler runs out of registers and serialises the products. Registers are handed over only where the sums need it.
constexpr Config prefill_tile(Numerics numerics, int matrices, int warpgroups, int tokens) {
  const bool is_fast = numerics == Numerics::fast;
  Config config{.numerics = numerics,
                .matrices = matrices,
                .math_warpgroups = warpgroups,
                .least_tokens = 64,
                .block_tokens = tokens,
                .token_step = 32,
                .blocks_per_slot = tokens == 192 ? 1 : 2,
                .overlap = weights::usual_overlap(numerics, warpgroups, tokens, 1)};
  config.stages = tokens == 192 ? (is_fast ? 6 : 7) : is_fast ? 3 : 4;
  config.math_registers = tokens > 128 ? 240 : warpgroups == 3 ? 160 : 0;
  config.loader_registers = config.math_registers > 0 ? 24 : 0;
  return config;
}

constexpr auto expert_tiles(Numerics numerics, int matrices) {
  return std::array{decode_tile(numerics, matrices, 16),      decode_tile(numerics, matrices, 64),
                    prefill_tile(numerics, matrices, 2, 128), prefill_tile(numerics, matrices, 3, 128),
                    prefill_tile(numerics, matrices, 2, 192)};
}

/// Both products of a layer in both numerics, with outputs in BF16, and for the exact path such tokens too. FP16 is
/// compiled where it is used.
inline constexpr auto default_config_list = [] {
  constexpr std::array tiles = expert_tiles(Numerics::exact, 1);
  std::array<Config, 4 * tiles.size()> configs;
  std::size_t next = 0;
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    for (const int matrices : {2, 1}) {
      for (const Config& tile : expert_tiles(numerics, matrices)) {
        configs[next] = tile;
        configs[next].operand = numerics == Numerics::exact ? Number::bf16 : Number::fp16;
        configs[next].output = Number::bf16;
        ++next;
      }
    }
  }
  return configs;
}();

/// Small tiles of both numerics and every overlap, for the emulator.
inline constexpr std::array small_config_list{
    Config{.math_warpgroups = 2, .block_tokens = 16, .blocks_per_slot = 4, .stages = 2, .overlap = Overlap::none},
    Config{.operand = Number::bf16,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 1,
           .least_tokens = 32,
           .block_tokens = 128,
           .token_step = 32,
           .blocks_per_slot = 2,
           .stages = 3,
           .overlap = Overlap::step},
    Config{.output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .math_warpgroups = 2,
           .block_tokens = 32,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::block,
           .loader_registers = 40,
           .math_registers = 216},
    Config{.numerics = Numerics::fast,
           .math_warpgroups = 2,
           .block_tokens = 16,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::none,
           .dependent_launch = false},
    Config{.numerics = Numerics::fast,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::step},
    Config{.numerics = Numerics::fast,
           .output = Number::bf16,
           .activation = ActivationCode::gelu_tanh,
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 3,
           .block_tokens = 32,
           .blocks_per_slot = 2,
           .stages = 2,
           .overlap = Overlap::block},
};

}  // namespace thresher::strategies::grouped_gemm::packed
