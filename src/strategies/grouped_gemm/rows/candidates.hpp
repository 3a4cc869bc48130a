#pragma once
/// The configurations that are worth predicting, and small ones for the emulator.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "strategies/grouped_gemm/rows/config.hpp"

namespace thresher::strategies::grouped_gemm::rows {

/// A tile, which is compiled where it is used; the ring takes what it leaves of a multiprocessor's memory, for up to
/// 1024 experts.
struct TileShape {
  int block_tokens;
  int block_outputs;
  int stages;
  bool by_turns = true;
};
inline constexpr std::array tile_shapes{TileShape{128, 64, 6}, TileShape{128, 96, 5}, TileShape{192, 64, 5}};
/// Of FP8 whose sums are promoted, and take twice the registers; warpgroups that share a tile hide their additions.
inline constexpr std::array promoted_tile_shapes{TileShape{128, 48, 7}, TileShape{64, 96, 6},
                                                 TileShape{128, 64, 6, false}, TileShape{128, 96, 5, false},
                                                 TileShape{128, 128, 4, false}};

/// Of outputs that are requantised in blocks: a tile has all that share a scale.
inline constexpr std::array gate_up_block_tile_shapes{TileShape{64, 128, 5}};
inline constexpr std::array block_tile_shapes{TileShape{128, 64, 6}};
inline constexpr std::array promoted_gate_up_block_tile_shapes{TileShape{128, 128, 4, false}};
inline constexpr std::array promoted_block_tile_shapes{TileShape{64, 64, 8}, TileShape{128, 64, 6, false}};

inline std::span<const TileShape> block_shapes_for(const Config& config) {
  if (config.matrices == 2) {
    return promotes(config) ? promoted_gate_up_block_tile_shapes
                            : std::span<const TileShape>(gate_up_block_tile_shapes);
  }
  return promotes(config) ? promoted_block_tile_shapes : std::span<const TileShape>(block_tile_shapes);
}

inline std::span<const TileShape> shapes_for(const Config& config) {
  if (config.output_scaling == Scaling::block) {
    return block_shapes_for(config);
  }
  return promotes(config) ? std::span<const TileShape>(promoted_tile_shapes) : tile_shapes;
}

/// Slots are 128 bytes wide.
constexpr Config with_tile(Config config, const TileShape& tile) {
  config.by_turns = tile.by_turns;
  config.block_tokens = tile.block_tokens;
  config.block_outputs = tile.block_outputs;
  config.block_k = 128 / element_bytes(config.operand);
  config.stages = tile.stages;
  if (sum_registers(config) > 128 || config.output_scaling == Scaling::block) {
    config.loader_registers = 40;
    config.math_registers = 232;
  }
  return config;
}

/// Those for groups of up to `rows` rows, if there can be a whole tile.
inline std::vector<TileShape> tile_shapes_for(const Config& config, std::int64_t rows) {
  std::vector<TileShape> found;
  for (const TileShape& tile : shapes_for(config)) {
    if (rows >= tile.block_tokens) {
      found.push_back(tile);
    }
  }
  return found;
}

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
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .bias = true,
           .gathered = true,
           .block_tokens = 128,
           .block_outputs = 16,
           .block_k = 128,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .row_weights = true,
           .by_turns = false,
           .block_tokens = 128,
           .block_outputs = 96,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .output = Number::fp32,
           .matrices = 1,
           .gathered = true,
           .math_warpgroups = 3,
           .block_tokens = 64,
           .block_outputs = 40,
           .block_k = 64,
           .stages = 4},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::block,
           .output = Number::fp32,
           .by_turns = false,
           .block_tokens = 128,
           .block_outputs = 32,
           .block_k = 128,
           .stages = 3},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::tensor,
           .matrices = 1,
           .block_tokens = 64,
           .block_outputs = 16,
           .block_k = 128,
           .stages = 2},
    Config{.numerics = Numerics::fast,
           .operand = Number::e4m3,
           .token_scaling = Scaling::tensor,
           .weight_scaling = Scaling::row,
           .block_tokens = 128,
           .block_outputs = 24,
           .block_k = 256,
           .stages = 2},
    Config{.output = Number::e4m3,
           .output_scaling = Scaling::block,
           .matrices = 1,
           .bias = true,
           .block_tokens = 128,
           .block_outputs = 64,
           .stages = 2,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.output = Number::e4m3,
           .output_scaling = Scaling::block,
           .gathered = true,
           .block_tokens = 64,
           .block_outputs = 128,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::e4m3,
           .output_scaling = Scaling::tensor,
           .row_weights = true,
           .block_tokens = 64,
           .block_outputs = 24,
           .block_k = 128,
           .stages = 2},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .output = Number::e4m3,
           .output_scaling = Scaling::block,
           .by_turns = false,
           .block_tokens = 128,
           .block_outputs = 128,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::block,
           .weight_scaling = Scaling::block,
           .bias = true,
           .row_weights = true,
           .by_turns = false,
           .block_tokens = 128,
           .block_outputs = 104,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.operand = Number::e4m3,
           .token_scaling = Scaling::row,
           .weight_scaling = Scaling::row,
           .output = Number::fp32,
           .matrices = 1,
           .gathered = true,
           .block_tokens = 128,
           .block_outputs = 56,
           .block_k = 128,
           .stages = 2,
           .loader_registers = 40,
           .math_registers = 232},
};

}  // namespace thresher::strategies::grouped_gemm::rows
