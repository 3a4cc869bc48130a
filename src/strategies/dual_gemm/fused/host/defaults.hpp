#pragma once
/// What the planner chooses for the origin's problems on an H200, with either epilogue: compiled ahead of time.
#include <array>

#include "strategies/dual_gemm/fused/config.hpp"

namespace thresher::strategies::dual_gemm::fused {

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

}  // namespace thresher::strategies::dual_gemm::fused
