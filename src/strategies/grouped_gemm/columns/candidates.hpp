#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "strategies/grouped_gemm/columns/config.hpp"

namespace thresher::strategies::grouped_gemm::columns {

/// A tile and how its blocks share a multiprocessor; the ring takes what is left of its memory.
struct TileShape {
  int math_warpgroups;
  int block_tokens;
  int stages;
  int blocks_resident;
  bool by_turns = false;
};

/// For up to 1024 experts.
inline constexpr std::array tile_shapes{
    TileShape{2, 16, 6, 1},  TileShape{1, 16, 5, 2},  TileShape{2, 64, 5, 1},        TileShape{1, 64, 4, 2},
    TileShape{2, 128, 4, 1}, TileShape{2, 160, 4, 1}, TileShape{2, 128, 6, 1, true}, TileShape{2, 192, 5, 1, true},
};

/// Of FP8 whose sums are promoted, and take twice the registers.
inline constexpr std::array promoted_tile_shapes{
    TileShape{2, 16, 6, 1}, TileShape{1, 16, 5, 2},       TileShape{2, 64, 5, 1},       TileShape{1, 64, 4, 2},
    TileShape{2, 96, 4, 1}, TileShape{2, 64, 8, 1, true}, TileShape{2, 96, 7, 1, true},
};

/// Slots are 128 bytes wide.
constexpr Config with_tile(Config config, const TileShape& tile) {
  config.math_warpgroups = tile.math_warpgroups;
  config.by_turns = tile.by_turns;
  config.block_tokens = tile.block_tokens;
  config.block_k = 128 / element_bytes(config.operand);
  config.stages = tile.stages;
  config.blocks_resident = tile.blocks_resident;
  if (sum_registers(config) >= 128 && tile.blocks_resident == 1) {
    // 192 sums leave few registers for scales.
    config.loader_registers = promotes(config) ? 24 : 40;
    config.math_registers = promotes(config) ? 240 : 232;
  }
  return config;
}

/// Those for groups of up to `rows` rows: none for more than there can be, and of the smallest none for many.
/// `config` says what is multiplied and how it is summed.
inline std::vector<TileShape> tile_shapes_for(const Config& config, std::int64_t rows) {
  std::vector<TileShape> found;
  for (const TileShape& tile : promotes(config) ? std::span<const TileShape>(promoted_tile_shapes) : tile_shapes) {
    const std::int64_t too_few = tile.block_tokens > 128 ? 128 : tile.block_tokens > 64 ? 64 : 16;
    if (rows > 16 ? tile.block_tokens > 16 && rows > too_few : tile.block_tokens == 16) {
      found.push_back(tile);
    }
  }
  return found;
}

/// Which take the compiler so long that they are compiled where they are used.
constexpr bool is_large(const TileShape& tile) { return tile.block_tokens > 128 || tile.by_turns; }

/// Both products of a layer in BF16, with the tiles above but for large ones. FP16 and FP8 are compiled where they are
/// used.
inline constexpr auto default_config_list = [] {
  constexpr auto count =
      tile_shapes.size() - static_cast<std::size_t>(std::count_if(tile_shapes.begin(), tile_shapes.end(), is_large));
  std::array<Config, 2 * count> configs;
  std::size_t next = 0;
  for (const int matrices : {2, 1}) {
    for (const TileShape& tile : tile_shapes) {
      if (!is_large(tile)) {
        configs[next++] = with_tile({.operand = Number::bf16, .output = Number::bf16, .matrices = matrices}, tile);
      }
    }
  }
  return configs;
}();

/// Small tiles, so that a few groups of rows have many of them; each knob is set somewhere.
inline constexpr std::array small_config_list{
    Config{.math_warpgroups = 1, .block_tokens = 32, .stages = 3},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .math_warpgroups = 1,
           .block_tokens = 8,
           .stages = 2},
    Config{.output = Number::fp32,
           .matrices = 1,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .stages = 3,
           .dependent_launch = false},
    Config{.operand = Number::fp16,
           .output = Number::bf16,
           .activation = ActivationCode::gelu_tanh,
           .gathered = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .block_k = 128,
           .stages = 2},
    // Groups of more than a tile are cut evenly, to widths that end in part of a box.
    Config{.math_warpgroups = 1, .block_tokens = 128, .token_step = 16, .stages = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 2,
           .by_turns = true,
           .block_tokens = 32,
           .block_k = 32,
           .stages = 3},
    Config{.matrices = 1,
           .math_warpgroups = 2,
           .block_tokens = 128,
           .token_step = 0,
           .stages = 2,
           .blocks_resident = 1,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::tensor,
           .math_warpgroups = 1,
           .block_tokens = 32,
           .block_k = 128,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 2,
           .block_tokens = 16,
           .block_k = 128,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .math_warpgroups = 2,
           .block_tokens = 64,
           .block_k = 128,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .output = Number::fp32,
           .matrices = 1,
           .bias = true,
           .gathered = true,
           .math_warpgroups = 2,
           .by_turns = true,
           .block_tokens = 96,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 24,
           .math_registers = 240},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::block,
           .row_weights = true,
           .math_warpgroups = 1,
           .block_tokens = 8,
           .block_k = 64,
           .stages = 4},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::row,
           .output = Number::fp16,
           .matrices = 1,
           .math_warpgroups = 1,
           .block_tokens = 16,
           .block_k = 128,
           .stages = 2},
    Config{.numerics = Numerics::fast,
           .operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::tensor,
           .activation = ActivationCode::gelu_tanh,
           .math_warpgroups = 1,
           .block_tokens = 32,
           .block_k = 256,
           .stages = 2},
    Config{.numerics = Numerics::fast,
           .operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .matrices = 1,
           .row_weights = true,
           .math_warpgroups = 2,
           .by_turns = true,
           .block_tokens = 64,
           .block_k = 128,
           .stages = 3},
    Config{.output = Number::e4m3,
           .output_scaling = Scaling::block,
           .bias = true,
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 2,
           .block_tokens = 64,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .output = Number::e4m3,
           .output_scaling = Scaling::block,
           .matrices = 1,
           .math_warpgroups = 4,
           .block_tokens = 8,
           .block_k = 128,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::e4m3,
           .output_scaling = Scaling::tensor,
           .math_warpgroups = 2,
           .by_turns = true,
           .block_tokens = 96,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 24,
           .math_registers = 240},
};

}  // namespace thresher::strategies::grouped_gemm::columns
