#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <vector>

#include "strategies/grouped_gemm/rows/config.hpp"

namespace thresher::strategies::grouped_gemm::rows {

/// A tile; the ring takes what it leaves of a multiprocessor's memory, for up to 1024 experts.
struct TileShape {
  int block_tokens;
  int block_outputs;
  int stages;
};
inline constexpr std::array tile_shapes{TileShape{128, 64, 6}, TileShape{128, 96, 5}, TileShape{192, 64, 5}};

constexpr Config with_tile(Config config, const TileShape& tile) {
  config.block_tokens = tile.block_tokens;
  config.block_outputs = tile.block_outputs;
  config.stages = tile.stages;
  if (tile.block_tokens * tile.block_outputs > 128 * 64) {  // whose sums take more than 128 registers
    config.loader_registers = 40;
    config.math_registers = 232;
  }
  return config;
}

/// Those for groups of up to `rows` rows, if there can be a whole tile.
inline std::vector<TileShape> tile_shapes_for(std::int64_t rows) {
  std::vector<TileShape> found;
  for (const TileShape& tile : tile_shapes) {
    if (rows >= tile.block_tokens) {
      found.push_back(tile);
    }
  }
  return found;
}

/// Both products of a layer in BF16. None is built in: they are compiled where they are used.
inline constexpr auto layer_config_list = [] {
  std::array<Config, 2 * tile_shapes.size()> configs;
  std::size_t next = 0;
  for (const int matrices : {2, 1}) {
    for (const TileShape& tile : tile_shapes) {
      configs[next++] = with_tile({.matrices = matrices}, tile);
    }
  }
  return configs;
}();

/// Small tiles, so that a few groups of rows have many of them; each knob is set somewhere.
inline constexpr std::array small_config_list{
    Config{.block_tokens = 128, .block_outputs = 32, .stages = 3},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .bias = true,
           .row_weights = true,
           .math_warpgroups = 3,
           .block_tokens = 64,
           .block_outputs = 24,
           .block_k = 128,
           .stages = 2},
    Config{.output = Number::fp32,
           .matrices = 1,
           .bias = true,
           .gathered = true,
           .block_tokens = 128,
           .block_outputs = 16,
           .block_k = 32,
           .stages = 3,
           .loader_registers = 40,
           .math_registers = 232,
           .dependent_launch = false},
};

}  // namespace thresher::strategies::grouped_gemm::rows
