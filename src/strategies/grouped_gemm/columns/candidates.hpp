#pragma once
/// The configurations that are worth predicting, those compiled ahead of time, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/grouped_gemm/columns/config.hpp"

namespace thresher::strategies::grouped_gemm::columns {

/// A tile and how its blocks share a multiprocessor; the ring takes what is left of its memory.
struct TileShape {
  int math_warpgroups;
  int block_tokens;
  int stages;
  int blocks_resident;
};

/// For up to 1024 experts.
inline constexpr std::array tile_shapes{
    TileShape{2, 16, 6, 1}, TileShape{1, 16, 5, 2}, TileShape{2, 64, 5, 1}, TileShape{1, 64, 4, 2},
    TileShape{2, 128, 4, 1},
};

constexpr Config with_tile(Config config, const TileShape& tile) {
  config.math_warpgroups = tile.math_warpgroups;
  config.block_tokens = tile.block_tokens;
  config.stages = tile.stages;
  config.blocks_resident = tile.blocks_resident;
  if (tile.block_tokens == 128) {  // whose sums alone take 128 registers
    config.loader_registers = 40;
    config.math_registers = 232;
  }
  return config;
}

/// Those for groups of up to `rows` rows: with few, the smaller tiles alone.
inline std::vector<TileShape> tile_shapes_for(std::int64_t rows) {
  std::vector<TileShape> found;
  for (const TileShape& tile : tile_shapes) {
    if (rows > 16 ? tile.block_tokens > 16 : tile.block_tokens == 16) {
      found.push_back(tile);
    }
  }
  return found;
}

/// Both products of a layer, with the tiles above.
inline constexpr auto default_config_list = [] {
  std::array<Config, 4 * tile_shapes.size()> configs;
  std::size_t next = 0;
  for (const Number number : {Number::bf16, Number::fp16}) {
    for (const int matrices : {2, 1}) {
      for (const TileShape& tile : tile_shapes) {
        configs[next++] = with_tile({.operand = number, .output = number, .matrices = matrices}, tile);
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
           .row_weights = true,
           .gathered = true,
           .math_warpgroups = 1,
           .block_tokens = 64,
           .block_k = 128,
           .stages = 2},
    Config{.matrices = 1,
           .math_warpgroups = 2,
           .block_tokens = 128,
           .stages = 2,
           .blocks_resident = 1,
           .loader_registers = 40,
           .math_registers = 232},
};

}  // namespace thresher::strategies::grouped_gemm::columns
