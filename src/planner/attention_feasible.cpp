#include <fmt/format.h>

#include "planner/feasible.hpp"
#include "planner/obstacles.hpp"

namespace thresher::planner {
namespace {

constexpr int wgmma_rows = 64;
constexpr int base_registers = 40;
constexpr int element_bytes = 2;

Resources resources_of(const AttentionProblem& problem, const AttentionConfig& config, const DeviceSpec& device) {
  const int dim = static_cast<int>(problem.head_dim);
  Resources out;
  out.threads = config.threads();
  out.stage_bytes = std::int64_t{2} * config.key_step * dim * element_bytes;  // keys and values
  const std::int64_t query_bytes = std::int64_t{config.query_rows} * dim * element_bytes;
  out.shared_bytes = config.stages * out.stage_bytes + query_bytes + 1024 + 16 * config.stages;
  const int rows_per_thread = config.query_rows / std::max(1, config.math_warpgroups);
  if (device.matrix_unit == MatrixUnit::wgmma) {
    // Logits (their 16-bit form takes over their registers), the output, and the queries where they stay in registers.
    out.registers_per_thread = rows_per_thread * (config.key_step + dim) / 128 + base_registers +
                               (config.queries_in_registers ? rows_per_thread * dim / 256 : 0);
  } else {
    out.registers_per_thread = rows_per_thread + base_registers;
    out.tensor_memory_columns = (config.query_rows + 127) / 128 * (2 * config.key_step + dim);
  }
  return out;
}

}  // namespace

std::string text(const AttentionConfig& config) {
  std::string out = fmt::format("{} queries, {} keys a step, {} stages, {} warpgroups", config.query_rows,
                                config.key_step, config.stages, config.math_warpgroups);
  if (config.split_keys > 1) {
    out += fmt::format(", keys split over {}", config.split_keys);
  }
  if (config.multicast > 1) {
    out += fmt::format(", multicast over {}", config.multicast);
  }
  out += config.queries_in_registers ? ", queries in registers" : "";
  out += config.persistent ? ", persistent" : "";
  return out;
}

Feasibility feasible(const AttentionProblem& problem, const AttentionConfig& config, const DeviceSpec& device) {
  Feasibility result;
  if (problem.format == Format::fp32) {
    result.obstacles.emplace_back("format: attention multiplies in fp16 or bf16, not in fp32");
  }
  const int rows = config.math_warpgroups * wgmma_rows;
  if (rows < 1 || config.query_rows % rows != 0) {
    result.obstacles.push_back(
        fmt::format("matrix shape: {} query rows are not a multiple of {} ({} for each of {} math warpgroups)",
                    config.query_rows, rows, wgmma_rows, config.math_warpgroups));
  }
  if (config.key_step % 16 != 0 || config.key_step > 256) {
    result.obstacles.push_back(
        fmt::format("matrix shape: {} keys a step; a product takes multiples of 16 up to 256", config.key_step));
  }
  result.resources = resources_of(problem, config, device);
  add_shared_obstacles(result,
                       {config.math_warpgroups, config.blocks_per_multiprocessor, config.cluster(),
                        config.loader_registers, config.math_registers, config.stages},
                       device);
  return result;
}

}  // namespace thresher::planner
