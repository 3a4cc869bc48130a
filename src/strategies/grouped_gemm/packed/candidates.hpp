#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <vector>

#include "strategies/grouped_gemm/packed/config.hpp"

namespace thresher::strategies::grouped_gemm::packed {

/// Groups of few rows in the fast path: two thread blocks a multiprocessor hide each other's waits.
constexpr Config fast_decode_tile(int matrices, int tokens) {
  return {.numerics = Numerics::fast,
          .matrices = matrices,
          .block_tokens = tokens,
          .blocks_per_slot = 2,
          .stages = 3,
          .blocks_resident = 2,
          .overlap = Overlap::none};
}

/// The exact path issues more for a weight. Of 16 tokens a warpgroup converts the next slot beside its products; one
/// matrix alone stages twice the outputs, which cost a slot.
constexpr Config exact_least_tile(int matrices) {
  return {.matrices = matrices,
          .block_tokens = 16,
          .blocks_per_slot = 4,
          .stages = matrices == 1 ? 3 : 4,
          .blocks_resident = 2,
          .overlap = Overlap::step};
}

/// Above, four warpgroups in one block hide each other's waits.
constexpr Config exact_decode_tile(int matrices, int tokens) {
  return {.matrices = matrices,
          .math_warpgroups = 4,
          .block_tokens = tokens,
          .blocks_per_slot = tokens <= 32 ? 4 : 2,
          .stages = tokens > 32     ? 6
                    : matrices == 1 ? 3
                                    : 4,
          .overlap = Overlap::none};
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

constexpr auto exact_tiles(int matrices) {
  constexpr Numerics exact = Numerics::exact;
  return std::array{exact_least_tile(matrices),
                    exact_decode_tile(matrices, 32),
                    exact_decode_tile(matrices, 64),
                    prefill_tile(exact, matrices, 2, 128),
                    prefill_tile(exact, matrices, 3, 128),
                    prefill_tile(exact, matrices, 2, 192)};
}
constexpr auto fast_tiles(int matrices) {
  constexpr Numerics fast = Numerics::fast;
  return std::array{fast_decode_tile(matrices, 32), fast_decode_tile(matrices, 64),
                    prefill_tile(fast, matrices, 2, 128), prefill_tile(fast, matrices, 3, 128),
                    prefill_tile(fast, matrices, 2, 192)};
}

inline std::vector<Config> expert_tiles(Numerics numerics, int matrices) {
  const auto listed = [](const auto& tiles) { return std::vector<Config>(tiles.begin(), tiles.end()); };
  return numerics == Numerics::fast ? listed(fast_tiles(matrices)) : listed(exact_tiles(matrices));
}

/// Which takes the compiler so long that it is compiled where it is used.
constexpr bool is_large(const Config& tile) { return tile.block_tokens > 64; }

/// Both products of a layer in both numerics, with outputs in BF16, and for the exact path such tokens too. FP16 is
/// compiled where it is used.
inline constexpr auto default_config_list = [] {
  constexpr auto smaller = [](const auto& tiles) {
    return tiles.size() - static_cast<std::size_t>(std::count_if(tiles.begin(), tiles.end(), is_large));
  };
  std::array<Config, 2 * (smaller(exact_tiles(2)) + smaller(fast_tiles(2)))> configs;
  std::size_t next = 0;
  const auto add = [&](const auto& tiles, Number operand) {
    for (Config tile : tiles) {
      if (!is_large(tile)) {
        tile.operand = operand;
        tile.output = Number::bf16;
        configs[next++] = tile;
      }
    }
  };
  for (const int matrices : {2, 1}) {
    add(exact_tiles(matrices), Number::bf16);
    add(fast_tiles(matrices), Number::fp16);
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
