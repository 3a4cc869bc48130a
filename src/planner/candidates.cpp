#include <algorithm>
#include <array>

#include "planner/obstacles.hpp"
#include "planner/rank.hpp"

namespace thresher::planner {
namespace {

constexpr int max_stages = 8;

/// Registers moved from the loader to the math warpgroups where the launch alone gives too few.
void hand_over_registers(const DualGemmProblem& problem, DualGemmConfig& config, const DeviceSpec& device) {
  const Resources needed = feasible(problem, config, device).resources;
  if (needed.registers_per_thread <= needed.registers_available) {
    return;
  }
  const int at_launch = launch_registers(device, config.threads(), config.blocks_per_multiprocessor);
  constexpr int loader = 40;
  const int spare = (at_launch - loader) / config.math_warpgroups / 8 * 8;
  if (spare > 0) {
    config.loader_registers = loader;
    config.math_registers = std::min(240, at_launch + spare);
  }
}

/// As many stages as fit, up to a limit: they cost nothing where only one block fits anyway.
void fill_stages(const DualGemmProblem& problem, DualGemmConfig& config, const DeviceSpec& device) {
  const Resources one = feasible(problem, config, device).resources;
  const std::int64_t fixed = one.shared_bytes - config.stages * one.stage_bytes;
  const std::int64_t room = device.shared_bytes_per_multiprocessor / config.blocks_per_multiprocessor - 1024 - fixed;
  const std::int64_t limit = std::min<std::int64_t>(room, device.shared_bytes_per_block - fixed);
  config.stages = static_cast<int>(std::clamp<std::int64_t>(limit / (one.stage_bytes + 16), 2, max_stages));
}

DualGemmConfig finished(const DualGemmProblem& problem, DualGemmConfig config, const DeviceSpec& device) {
  fill_stages(problem, config, device);
  if (device.matrix_unit == MatrixUnit::wgmma) {
    hand_over_registers(problem, config, device);
  }
  return config;
}

void add_converting(std::vector<DualGemmConfig>& out, const DualGemmProblem& problem, const DeviceSpec& device) {
  struct Shape {
    int weight_rows;
    int warpgroups;
  };
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    for (const Shape& shape : {Shape{128, 2}, Shape{192, 3}, Shape{256, 4}}) {
      for (const int tokens : {8, 16, 32, 64, 128, 256}) {
        for (const int split : {1, 2}) {
          for (const int blocks : {1, 2}) {
            DualGemmConfig config;
            config.numerics = numerics;
            config.tile = {shape.weight_rows, tokens, 128};
            config.math_warpgroups = shape.warpgroups;
            config.cluster = config.split_k = split;
            config.blocks_per_multiprocessor = blocks;
            out.push_back(finished(problem, config, device));
          }
        }
      }
    }
  }
}

/// Operands that the matrix unit takes as they are: tokens along the rows.
void add_plain(std::vector<DualGemmConfig>& out, const DualGemmProblem& problem, const DeviceSpec& device) {
  // A row of a stage is 128 bytes, the width that the copy engine swizzles.
  const int k = matrix_type(problem, {}, device) == MatrixType::nvfp4 ? 256 : 64;
  for (const Strategy strategy : {Strategy::interleaved, Strategy::sequential, Strategy::pingpong}) {
    for (const int tokens : {64, 128, 256}) {
      // 96, 160 and 224: what divides rows of weights among the multiprocessors evenly.
      for (const int weight_rows : {64, 96, 128, 160, 192, 224, 256}) {
        for (const int split : {1, 2}) {
          for (const bool persistent : {false, true}) {
            DualGemmConfig config;
            config.strategy = strategy;
            config.tile = {weight_rows, tokens, k};
            config.mma_rows = MmaRows::tokens;
            config.math_warpgroups = strategy == Strategy::pingpong || tokens > 64 ? 2 : 1;
            config.epilogue = bits(problem.out) == 16 && problem.n % 8 == 0 ? Epilogue::tma : Epilogue::simt;
            config.persistent = persistent;
            config.cluster = config.split_k = split;
            // Taking turns needs a second tile; partial sums lie where a second tile's operands would.
            if (strategy == Strategy::pingpong ? persistent : !persistent || split == 1) {
              out.push_back(finished(problem, config, device));
            }
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<DualGemmConfig> dual_gemm_candidates(const DualGemmProblem& problem, const DeviceSpec& device) {
  std::vector<DualGemmConfig> out;
  if (converts_weights(problem, device)) {
    add_converting(out, problem, device);
  } else {
    add_plain(out, problem, device);
  }
  DualGemmConfig library;
  library.strategy = Strategy::two_pass;
  out.push_back(library);
  return out;
}

std::vector<AttentionConfig> attention_candidates(const AttentionProblem& problem, const DeviceSpec& device) {
  std::vector<AttentionConfig> out;
  for (const int warpgroups : {1, 2, 3}) {
    for (const int key_step : {64, 128}) {
      for (const int split : {1, 2, 4}) {
        for (const int multicast : {1, 2}) {
          AttentionConfig config;
          config.query_rows = 64 * warpgroups;
          config.math_warpgroups = warpgroups;
          config.key_step = key_step;
          config.split_keys = split;
          config.multicast = multicast;
          config.persistent = split == 1;
          const Resources one = feasible(problem, config, device).resources;
          const std::int64_t fixed = one.shared_bytes - config.stages * one.stage_bytes;
          const std::int64_t steps = (problem.keys + key_step - 1) / key_step / split;
          const std::int64_t room = (device.shared_bytes_per_block - fixed) / (one.stage_bytes + 16);
          config.stages = static_cast<int>(std::clamp<std::int64_t>(std::min(room, steps), 2, 4));
          if (one.registers_per_thread > one.registers_available && warpgroups > 1) {
            config.loader_registers = 40;
            config.math_registers = warpgroups == 2 ? 232 : 160;
          }
          out.push_back(config);
        }
      }
    }
  }
  return out;
}

}  // namespace thresher::planner
