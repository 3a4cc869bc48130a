#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/integers.hpp"
#include "strategies/gemm/wgmma_dequant/config.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

// --- dense

/// Small numbers of tokens: two thread blocks a multiprocessor hide each other's waits.
constexpr Config decode(Numerics numerics, int tokens) {
  Config config{.numerics = numerics,
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

/// Registers are reallocated only where the accumulators need it: without that, the blocks that prepare the next call's
/// tokens fit beside this one.
constexpr Config prefill(Numerics numerics, int warpgroups, int tokens, int split) {
  const bool is_fast = numerics == Numerics::fast;
  const bool is_wide = tokens == 256;
  Config config{.numerics = numerics,
                .math_warpgroups = warpgroups,
                .block_tokens = tokens,
                .blocks_per_slot = is_fast && is_wide ? 1 : 2,
                .split_k = split,
                .overlap = usual_overlap(numerics, warpgroups, tokens, 1)};
  const int narrow_stages = warpgroups == 3 ? 3 : 4;
  config.stages = is_fast ? (is_wide ? 5 : narrow_stages) : (is_wide ? 3 : narrow_stages + 1);
  config.math_registers = is_wide ? 240 : 0;
  config.loader_registers = is_wide ? 24 : 0;
  return config;
}

constexpr auto dense_tiles(Numerics numerics) {
  return std::array{decode(numerics, 8),          decode(numerics, 16),         decode(numerics, 32),
                    decode(numerics, 64),         prefill(numerics, 2, 128, 1), prefill(numerics, 3, 128, 1),
                    prefill(numerics, 2, 256, 1), prefill(numerics, 2, 128, 2), prefill(numerics, 3, 128, 2),
                    prefill(numerics, 2, 256, 2)};
}

/// For `m` tokens: with few, the smallest tile that holds them all.
inline std::vector<Config> dense_candidates(Numerics numerics, std::int64_t m) {
  std::vector<Config> found;
  for (const Config& tile : dense_tiles(numerics)) {
    if (tile.block_tokens <= 64) {
      if (m <= tile.block_tokens) {
        return {tile};
      }
    } else if (tile.block_tokens <= 128 || m > 128) {
      found.push_back(tile);
    }
  }
  return found;
}

/// Each of them in both numerics, with outputs in fp16 and bf16, and for the exact one such tokens too.
inline constexpr auto dense_default_configs = [] {
  std::array<Config, 4 * dense_tiles(Numerics::exact).size()> configs;
  std::size_t next = 0;
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    for (const Config& tile : dense_tiles(numerics)) {
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

// --- grouped

/// Groups of few rows, fast: two thread blocks a multiprocessor hide each other's waits.
constexpr Config fast_decode(int matrices, int tokens) {
  return {.dense = false,
          .numerics = Numerics::fast,
          .matrices = matrices,
          .block_tokens = tokens,
          .blocks_per_slot = 2,
          .stages = 3,
          .blocks_resident = 2,
          .overlap = Overlap::none};
}

/// Exact numerics, with 16 tokens. Measured, the other block of a multiprocessor hides a warpgroup's waits better than
/// fragments made ahead. One matrix alone stages twice the outputs, which cost a stage.
constexpr Config exact_decode_16(int matrices) {
  return {.dense = false,
          .matrices = matrices,
          .block_tokens = 16,
          .blocks_per_slot = 4,
          .stages = matrices == 1 ? 3 : 4,
          .blocks_resident = 2,
          .overlap = Overlap::none};
}

/// Three blocks are together less often at the end of a tile; smaller stages make room for them. This is for one
/// matrix: gate and up take a tenth longer so.
constexpr Config exact_decode_16_in_threes() {
  Config config = exact_decode_16(1);
  config.blocks_per_slot = 2;
  config.stages = 4;
  config.blocks_resident = 3;
  return config;
}

/// Above, four warpgroups in one block hide each other's waits.
constexpr Config exact_decode(int matrices, int tokens) {
  return {.dense = false,
          .matrices = matrices,
          .math_warpgroups = 4,
          .block_tokens = tokens,
          .blocks_per_slot = tokens <= 32 ? 4 : 2,
          .stages = tokens > 32     ? 6
                    : matrices == 1 ? 3
                                    : 4,
          .overlap = Overlap::none};
}

/// Tile widths end where dequantization takes longer than products anyway. With more of them than these in one kernel
/// the compiler runs out of registers and serialises the products. Registers are reallocated only where the
/// accumulators need it.
constexpr Config grouped_prefill(Numerics numerics, int matrices, int warpgroups, int tokens) {
  const bool is_fast = numerics == Numerics::fast;
  Config config{.dense = false,
                .numerics = numerics,
                .matrices = matrices,
                .math_warpgroups = warpgroups,
                .least_tokens = 64,
                .block_tokens = tokens,
                .token_step = 32,
                .blocks_per_slot = tokens == 192 ? 1 : 2,
                .overlap = usual_overlap(numerics, warpgroups, tokens, 1)};
  config.stages = tokens == 192 ? (is_fast ? 6 : 7) : is_fast ? 3 : 4;
  config.math_registers = tokens > 128 ? 240 : warpgroups == 3 ? 160 : 0;
  config.loader_registers = config.math_registers > 0 ? 24 : 0;
  return config;
}

inline std::vector<Config> grouped_decodes(Numerics numerics, int matrices) {
  if (numerics == Numerics::fast) {
    return {fast_decode(matrices, 32), fast_decode(matrices, 64)};
  }
  return {exact_decode_16(matrices), exact_decode(matrices, 32), exact_decode(matrices, 64)};
}

/// For up to `rows` of a group; a tile that holds fewer is left in.
inline std::vector<Config> grouped_candidates(Numerics numerics, int matrices, std::int64_t rows) {
  std::vector<Config> found = grouped_decodes(numerics, matrices);
  if (numerics == Numerics::exact && matrices == 1) {
    found.push_back(exact_decode_16_in_threes());
  }
  found.push_back(grouped_prefill(numerics, matrices, 2, 128));
  found.push_back(grouped_prefill(numerics, matrices, 3, 128));
  if (rows > 128) {
    found.push_back(grouped_prefill(numerics, matrices, 2, 192));
  }
  return found;
}

/// So few tiles that they leave multiprocessors idle: clusters divide the K of each. Three blocks of two warpgroups, or
/// two of three, share a multiprocessor; one of four has it alone.
constexpr Config split_decode(Numerics numerics, int matrices, int warpgroups, int split) {
  const bool is_fast = numerics == Numerics::fast;
  return {.dense = false,
          .numerics = numerics,
          .matrices = matrices,
          .math_warpgroups = warpgroups,
          .block_tokens = 8,
          .blocks_per_slot = is_fast ? 2 : 4,
          .stages = warpgroups == 4 ? (is_fast ? 3 : 5)
                    : is_fast       ? 2
                                    : 3,
          .split_k = split,
          .blocks_resident = warpgroups == 4   ? 1
                             : warpgroups == 3 ? 2
                                               : 3,
          .overlap = Overlap::none};
}

/// For a usual call with so many experts that have rows: none where their tiles are many.
inline std::vector<Config> split_candidates(Numerics numerics, int matrices, double experts, std::int64_t n,
                                            int multiprocessors) {
  constexpr int most_of_a_multiprocessor = 4;
  std::vector<Config> found;
  for (const int warpgroups : {2, 3, 4}) {
    const Config whole = split_decode(numerics, matrices, warpgroups, 1);
    const double tiles = experts * static_cast<double>(ceil_div(n, std::int64_t{tile_outputs(whole)}));
    for (int split = 2; split <= pipeline::max_split_blocks && tiles <= most_of_a_multiprocessor * multiprocessors;
         ++split) {
      found.push_back(split_decode(numerics, matrices, warpgroups, split));
    }
  }
  return found;
}

/// How many blocks divide K, in clusters. Measured with weights from memory
/// (measurements/static_tiles_h200_2026-11-29.txt.xz): with two blocks a multiprocessor some room is left to the next
/// launch, whose weights then come early. Large tiles have one block there, and clusters of more blocks find fewer
/// places.
constexpr int static_split(const Config& config, std::int64_t tiles) {
  if (config.blocks_resident > 1) {
    return static_cast<int>(std::clamp<std::int64_t>(200 / tiles, 1, pipeline::max_split_blocks));
  }
  struct Limit {
    int split;
    int max_blocks;
  };
  for (const Limit& limit : {Limit{8, 112}, Limit{4, 112}, Limit{3, 100}, Limit{2, 132}}) {
    if (limit.split * tiles <= limit.max_blocks) {
      return limit.split;
    }
  }
  return 1;
}

/// A block's one tile, in a cluster that divides K. The tiles are those of the dense dual kernel, with smaller stages
/// for 64 tokens.
inline std::vector<Config> static_candidates(Numerics numerics, int matrices, std::int64_t rows, std::int64_t n) {
  std::vector<Config> found;
  for (Config config : dense_candidates(numerics, std::min<std::int64_t>(rows, 128))) {
    if (config.split_k != 1) {
      continue;
    }
    config.dense = false;
    config.static_tiles = true;
    config.matrices = matrices;
    if (numerics == Numerics::exact && config.block_tokens == 64) {
      config.blocks_per_slot = 2;
      config.stages = 4;
    }
    const std::int64_t tiles =
        ceil_div(rows, std::int64_t{config.block_tokens}) * ceil_div(n, std::int64_t{tile_outputs(config)});
    config.split_k = static_split(config, tiles);
    found.push_back(config);
  }
  return found;
}

/// Both products of a layer in both numerics, with outputs in BF16, and for the exact one such tokens too. FP16, and
/// the tiles that take the compiler long, are compiled where they are used.
inline std::vector<Config> grouped_default_configs() {
  std::vector<Config> found;
  for (const int matrices : {2, 1}) {
    for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
      for (Config config : grouped_decodes(numerics, matrices)) {
        config.operand = numerics == Numerics::exact ? Number::bf16 : Number::fp16;
        config.output = Number::bf16;
        found.push_back(config);
      }
    }
  }
  return found;
}

/// Stages of three blocks, where those of four end further behind K.
constexpr Config fitted(const Config& config, std::uint32_t k) {
  Config three = config;
  three.blocks_per_slot = 3;
  three.stages = config.stages * 4 / 3;
  const auto walked_k = [&](const Config& c) { return k_steps(c, k) * stage_k(c); };
  return config.blocks_per_slot == 4 && walked_k(three) < walked_k(config) ? three : config;
}

// --- both

/// Small tiles of both numerics and every overlap, for the emulator.
inline constexpr std::array small_configs{
    Config{.block_tokens = 8, .blocks_per_slot = 4, .stages = 2, .overlap = Overlap::none},
    Config{.block_tokens = 32, .stages = 3},
    Config{.operand = Number::bf16,
           .output = Number::bf16,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::block},
    Config{.output = Number::fp32,
           .activation = ActivationCode::gelu_tanh,
           .block_tokens = 64,
           .stages = 3,
           .split_k = 2,
           .loader_registers = 40,
           .math_registers = 216},
    Config{.math_warpgroups = 1, .block_tokens = 64, .stages = 3, .split_k = 4},
    Config{.numerics = Numerics::fast, .block_tokens = 8, .stages = 2, .overlap = Overlap::none},
    Config{.numerics = Numerics::fast, .block_tokens = 32, .blocks_per_slot = 1, .stages = 4},
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
           .activation = ActivationCode::situ,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .stages = 2,
           .overlap = Overlap::block},
    Config{.dense = false, .block_tokens = 16, .blocks_per_slot = 4, .stages = 2, .overlap = Overlap::none},
    Config{.dense = false,
           .operand = Number::bf16,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .block_tokens = 16,
           .blocks_per_slot = 4,
           .stages = 2,
           .static_tiles = true,
           .split_k = 4,
           .overlap = Overlap::none},
    Config{.dense = false,
           .numerics = Numerics::fast,
           .output = Number::fp32,
           .matrices = 1,
           .activation = ActivationCode::relu2,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .blocks_per_slot = 1,
           .stages = 3,
           .static_tiles = true,
           .split_k = 2},
    Config{.dense = false,
           .matrices = 1,
           .math_warpgroups = 1,
           .block_tokens = 8,
           .blocks_per_slot = 1,
           .stages = 4,
           .static_tiles = true,
           .split_k = 8,
           .overlap = Overlap::block},
    Config{.dense = false,
           .gathered = true,
           .block_tokens = 8,
           .blocks_per_slot = 3,
           .stages = 2,
           .split_k = 2,
           .overlap = Overlap::none},
    Config{.dense = false,
           .numerics = Numerics::fast,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 1,
           .block_tokens = 32,
           .blocks_per_slot = 1,
           .stages = 3,
           .split_k = 2,
           .overlap = Overlap::block},
    Config{.dense = false,
           .operand = Number::bf16,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 1,
           .least_tokens = 32,
           .token_step = 32,
           .stages = 3},
    Config{.dense = false,
           .output = Number::fp32,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .gathered = true,
           .block_tokens = 32,
           .blocks_per_slot = 1,
           .stages = 3,
           .overlap = Overlap::block,
           .loader_registers = 40,
           .math_registers = 216},
    Config{.dense = false,
           .numerics = Numerics::fast,
           .block_tokens = 16,
           .stages = 2,
           .overlap = Overlap::none,
           .dependent_launch = false},
    Config{.dense = false,
           .numerics = Numerics::fast,
           .output = Number::bf16,
           .matrices = 1,
           .bias = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .blocks_per_slot = 1,
           .stages = 3},
    Config{.dense = false,
           .numerics = Numerics::fast,
           .output = Number::bf16,
           .activation = ActivationCode::gelu_tanh,
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 3,
           .block_tokens = 32,
           .stages = 2,
           .overlap = Overlap::block},
};

}  // namespace thresher::strategies::gemm::wgmma_dequant
