#pragma once
/// Configurations that are compiled ahead of time for the GPU and for the CPU, and small ones that set every knob.
#include <array>

#include "strategies/gemm/wgmma/fused/config.hpp"

namespace thresher::strategies::gemm::fused {

inline constexpr std::array<Config, 16> default_config_list = [] {
  struct Tile {
    int block_outputs;
    int stages;
  };
  std::array<Config, 16> configs;
  std::size_t next = 0;
  for (const Number number : {Number::bf16, Number::fp16}) {
    for (const Tile& tile : {Tile{48, 8}, Tile{64, 7}, Tile{96, 5}, Tile{128, 4}}) {
      for (const Epilogue epilogue : {Epilogue::tma, Epilogue::simt}) {
        configs[next++] = {.operand = number,
                           .output = number,
                           .block_outputs = tile.block_outputs,
                           .stages = tile.stages,
                           .epilogue = epilogue};
      }
    }
  }
  return configs;
}();

/// Small tiles of every order, so that a problem of a few hundred rows has many of them; each knob is set somewhere.
inline constexpr std::array small_config_list{
    Config{.block_outputs = 64, .stages = 4, .epilogue = Epilogue::tma},
    Config{.operand = Number::fp16, .output = Number::fp16, .math_warpgroups = 1, .block_outputs = 24, .stages = 3},
    Config{.output = Number::fp32, .block_outputs = 48, .stages = 2, .multicast = 2},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .block_outputs = 32,
           .stages = 4,
           .split_k = 2,
           .epilogue = Epilogue::tma},
    Config{.warpgroup_tiles = 2, .block_outputs = 16, .block_k = 128, .stages = 2, .persistent = true},
    Config{.order = Order::sequential, .block_outputs = 40, .stages = 1},
    Config{.order = Order::sequential,
           .operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::situ,
           .block_outputs = 64,
           .stages = 3,
           .multicast = 2,
           .epilogue = Epilogue::tma},
    Config{.order = Order::pingpong,
           .block_outputs = 32,
           .stages = 3,
           .epilogue = Epilogue::tma,
           .persistent = true,
           .loader_registers = 40,
           .math_registers = 232},
    Config{.order = Order::pingpong,
           .operand = Number::fp16,
           .output = Number::fp16,
           .activation = ActivationCode::swiglu_clamped,
           .warpgroup_tiles = 2,
           .block_outputs = 24,
           .stages = 4,
           .raster = Raster::columns_first,
           .persistent = true},
    Config{.block_outputs = 32, .stages = 3, .multicast = 2, .split_k = 2},
    // These have one matrix.
    Config{.matrices = 1, .bias = true, .block_outputs = 64, .stages = 4, .split_k = 2, .epilogue = Epilogue::tma},
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .matrices = 1,
           .block_outputs = 32,
           .stages = 3,
           .multicast = 2,
           .split_k = 2},
    Config{.order = Order::pingpong,
           .output = Number::fp32,
           .matrices = 1,
           .activation = ActivationCode::relu2,
           .bias = true,
           .block_outputs = 48,
           .stages = 3,
           .persistent = true},
    // Two tiles of tokens a warpgroup, each staged in several panels.
    Config{.operand = Number::fp16,
           .output = Number::fp16,
           .warpgroup_tiles = 2,
           .block_outputs = 96,
           .stages = 2,
           .epilogue = Epilogue::tma,
           .loader_registers = 24,
           .math_registers = 240},
};

}  // namespace thresher::strategies::gemm::fused
