#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/feasible.hpp"
#include "planner/obstacles.hpp"

namespace thresher::planner {
namespace {

constexpr int wgmma_rows = 64;
constexpr int block_scaled_min_rows = 128;
constexpr int max_mma_columns = 256;
constexpr int tma_box_limit = 256;
constexpr int tma_stride_bytes = 16;
/// What a math thread needs beside accumulators and operand fragments: addresses, phases, loop state.
constexpr int base_registers = 24;
constexpr int fragment_registers = 32;

int mma_k(MatrixType type, MatrixUnit unit) {
  if (type == MatrixType::nvfp4) {
    return 64;
  }
  return type == MatrixType::fp8 || unit != MatrixUnit::wgmma ? 32 : 16;
}

struct MmaShape {
  int rows;
  int columns;
};

MmaShape mma_shape(const DualGemmConfig& config) { return {config.mma_row_count(), config.mma_column_count()}; }

std::int64_t tile_bytes(int rows, int k, double element_bits) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(rows) * k * element_bits / 8));
}

/// Columns of tensor memory: float32 accumulators take one column a column of the product for each 128 rows; block
/// scales take K/16 columns for each 128 rows of an operand (each scale stands in all four lane groups).
int tensor_memory_columns(const DualGemmConfig& config, MatrixType type) {
  const MmaShape mma = mma_shape(config);
  const int buffers = config.strategy == Strategy::pingpong ? 2 : config.passes();
  int columns = buffers * ((mma.rows + 127) / 128) * mma.columns;
  if (type == MatrixType::nvfp4) {
    columns += config.tile.k / 16 * ((config.slot_weight_rows() + 127) / 128 + (config.tile.tokens + 127) / 128);
  }
  return columns;
}

Resources resources_of(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device) {
  const MatrixType type = matrix_type(problem, config, device);
  const Tile& tile = config.tile;
  const bool converted_rows = converts_weights(problem, device) && config.mma_rows == MmaRows::weights &&
                              device.matrix_unit == MatrixUnit::wgmma;
  Resources out;
  out.threads = config.threads();
  out.stage_bytes = tile_bytes(config.slot_weight_rows(), tile.k, stored_bits(problem.b)) +
                    tile_bytes(tile.tokens, tile.k, stored_bits(type));
  const int barrier_bytes = 1024 + 16 * config.stages;
  out.shared_bytes = config.stages * out.stage_bytes + barrier_bytes;
  if (converts_weights(problem, device) && !converted_rows) {
    // Converted weights that are not a register operand need a double buffer of their own.
    out.shared_bytes += 2 * tile_bytes(config.slot_weight_rows(), tile.k, stored_bits(type));
  }
  if (config.epilogue == Epilogue::tma) {
    // A block of one tile stages its outputs in the stages that it has emptied.
    const std::int64_t staging = tile_bytes(tile.weight_rows / 2, tile.tokens, bits(problem.out)) / config.split_k;
    out.shared_bytes +=
        config.persistent ? staging : std::max<std::int64_t>(0, staging - config.stages * out.stage_bytes);
  }
  if (device.matrix_unit == MatrixUnit::wgmma) {
    const MmaShape mma = mma_shape(config);
    const int accumulators = config.passes() * mma.rows * mma.columns / (128 * std::max(1, config.math_warpgroups)) *
                             (config.strategy == Strategy::pingpong ? config.math_warpgroups : 1);
    out.registers_per_thread = accumulators + base_registers + (converted_rows ? fragment_registers : 0);
  } else {
    out.registers_per_thread = 2 * base_registers + fragment_registers;
    out.tensor_memory_columns = tensor_memory_columns(config, type);
  }
  return out;
}

void check_wgmma(std::vector<std::string>& obstacles, const DualGemmConfig& config) {
  const MmaShape mma = mma_shape(config);
  const int warpgroups = config.strategy == Strategy::pingpong ? 1 : config.math_warpgroups;
  if (mma.rows % (wgmma_rows * std::max(1, warpgroups)) != 0) {
    obstacles.push_back(
        fmt::format("matrix shape: {} rows are not a multiple of {} ({} rows for each of {} math "
                    "warpgroups)",
                    mma.rows, wgmma_rows * warpgroups, wgmma_rows, warpgroups));
  }
  if (mma.columns % 8 != 0 || mma.columns > max_mma_columns) {
    obstacles.push_back(
        fmt::format("matrix shape: {} columns; wgmma takes multiples of 8 up to {}", mma.columns, max_mma_columns));
  }
}

void check_tcgen05(std::vector<std::string>& obstacles, const DualGemmConfig& config, MatrixType type) {
  const MmaShape mma = mma_shape(config);
  const int least = type == MatrixType::nvfp4 ? block_scaled_min_rows : 64;
  if (mma.rows < least) {
    obstacles.push_back(fmt::format("matrix shape: {} rows are under the least of {}{}", mma.rows, least,
                                    type == MatrixType::nvfp4 ? " that a block-scaled FP4 MMA takes (M ≥ 128)" : ""));
  } else if (mma.rows % least != 0) {
    obstacles.push_back(fmt::format("matrix shape: {} rows are not a multiple of {}", mma.rows, least));
  }
  const int step = mma.rows == 64 ? 8 : 16;
  if (mma.columns % step != 0 || mma.columns > max_mma_columns) {
    obstacles.push_back(fmt::format("matrix shape: {} columns; tcgen05.mma takes multiples of {} up to {}", mma.columns,
                                    step, max_mma_columns));
  }
}

void check_tile(std::vector<std::string>& obstacles, const DualGemmProblem& problem, const DualGemmConfig& config,
                const DeviceSpec& device) {
  const MatrixType type = matrix_type(problem, config, device);
  const int k_step = mma_k(type, device.matrix_unit);
  if (config.tile.k % k_step != 0) {
    obstacles.push_back(fmt::format("matrix shape: K tile {} is not a multiple of {} ({} products)", config.tile.k,
                                    k_step, name(type)));
  }
  if (config.tile.weight_rows % 16 != 0) {
    obstacles.push_back(
        fmt::format("tile: {} weight rows are not a multiple of 16 (8 of B1 beside 8 of B2)", config.tile.weight_rows));
  }
  if (device.matrix_unit == MatrixUnit::wgmma) {
    check_wgmma(obstacles, config);
  } else {
    check_tcgen05(obstacles, config, type);
  }
  const std::int64_t k_steps = (problem.k + config.tile.k - 1) / config.tile.k;
  if (config.cluster % config.split_k != 0) {
    obstacles.push_back(fmt::format("split-K: {} parts do not divide a cluster of {}", config.split_k, config.cluster));
  } else if (config.split_k > k_steps) {
    obstacles.push_back(
        fmt::format("split-K: {} parts of {} K steps leave a block without work", config.split_k, k_steps));
  }
}

void check_copies(std::vector<std::string>& obstacles, const DualGemmProblem& problem, const DualGemmConfig& config) {
  const auto row_bytes = [](std::int64_t elements, Format format) { return elements * bits(format) / 8; };
  if (const std::int64_t bytes = row_bytes(problem.k, problem.a); bytes % tma_stride_bytes != 0) {
    obstacles.push_back(fmt::format("TMA: a row of a is {} bytes, not a multiple of {}: pad K = {}", bytes,
                                    tma_stride_bytes, problem.k));
  }
  if (const std::int64_t bytes = row_bytes(problem.n, problem.out);
      config.epilogue == Epilogue::tma && bytes % tma_stride_bytes != 0) {
    obstacles.push_back(fmt::format("TMA: a row of c is {} bytes, not a multiple of {}: use the simt epilogue", bytes,
                                    tma_stride_bytes));
  }
  if (config.tile.tokens > tma_box_limit) {
    obstacles.push_back(
        fmt::format("TMA: a box of {} tokens is over the limit of {}", config.tile.tokens, tma_box_limit));
  }
}

void check_numerics(std::vector<std::string>& obstacles, const DualGemmProblem& problem, const DualGemmConfig& config,
                    const DeviceSpec& device) {
  if (config.numerics == Numerics::fast && !converts_weights(problem, device)) {
    obstacles.push_back(
        fmt::format("numerics: fast is for NVFP4 weights that {} must convert; use exact", device.name));
  }
}

}  // namespace

Feasibility feasible(const DualGemmProblem& problem, const DualGemmConfig& config, const DeviceSpec& device) {
  Feasibility result;
  if (config.strategy == Strategy::two_pass) {
    return result;
  }
  check_numerics(result.obstacles, problem, config, device);
  check_tile(result.obstacles, problem, config, device);
  check_copies(result.obstacles, problem, config);
  result.resources = resources_of(problem, config, device);
  add_shared_obstacles(result,
                       {config.math_warpgroups, config.blocks_per_multiprocessor, config.cluster,
                        config.loader_registers, config.math_registers, config.stages,
                        // One stage makes copies and products take turns: slow, but it runs.
                        converts_weights(problem, device) || config.strategy == Strategy::pingpong ? 2 : 1},
                       device);
  return result;
}

}  // namespace thresher::planner
