#include "planner/obstacles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace thresher::planner {
namespace {

/// Shared memory that the system keeps for itself, a block.
constexpr int reserved_bytes_per_block = 1024;
constexpr int register_step = 8;
constexpr int min_setmaxnreg = 24;
constexpr int max_setmaxnreg = 240;

void check_threads(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device) {
  const int threads = result.resources.threads;
  if (launch.math_warpgroups < 1) {
    result.obstacles.push_back(fmt::format("{} math warpgroups: at least 1 is needed", launch.math_warpgroups));
  }
  if (threads > device.max_threads_per_block) {
    result.obstacles.push_back(
        fmt::format("threads: {} math warpgroups and a loader are {} threads a block, over the limit of {}",
                    launch.math_warpgroups, threads, device.max_threads_per_block));
  }
  if (threads * launch.blocks_per_multiprocessor > device.max_threads_per_multiprocessor) {
    result.obstacles.push_back(
        fmt::format("threads: {} blocks of {} are {} threads a multiprocessor, over the limit of {}",
                    launch.blocks_per_multiprocessor, threads, threads * launch.blocks_per_multiprocessor,
                    device.max_threads_per_multiprocessor));
  }
}

void check_shared(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device) {
  const Resources& resources = result.resources;
  if (resources.shared_bytes > device.shared_bytes_per_block) {
    result.obstacles.push_back(fmt::format(
        "shared memory: {} bytes a block ({} stages of {}) are over the limit of {} ({} KiB)", resources.shared_bytes,
        launch.stages, resources.stage_bytes, device.shared_bytes_per_block, device.shared_bytes_per_block / 1024));
  }
  const std::int64_t together = launch.blocks_per_multiprocessor * (resources.shared_bytes + reserved_bytes_per_block);
  if (launch.blocks_per_multiprocessor > 1 && together > device.shared_bytes_per_multiprocessor) {
    result.obstacles.push_back(
        fmt::format("shared memory: {} blocks of {} bytes (and {} reserved each) are {} bytes a multiprocessor, over "
                    "the limit of {}",
                    launch.blocks_per_multiprocessor, resources.shared_bytes, reserved_bytes_per_block, together,
                    device.shared_bytes_per_multiprocessor));
  }
}

/// The pool of setmaxnreg is what the block got at launch: a warpgroup that asks for more than the others gave back
/// waits for ever.
void check_register_pool(Feasibility& result, const LaunchShape& launch, int at_launch) {
  for (const int registers : {launch.loader_registers, launch.math_registers}) {
    if (registers < min_setmaxnreg || registers > max_setmaxnreg || registers % register_step != 0) {
      result.obstacles.push_back(fmt::format("setmaxnreg: {} registers a thread are not a multiple of {} from {} to {}",
                                             registers, register_step, min_setmaxnreg, max_setmaxnreg));
    }
  }
  const int asked = launch.loader_registers + launch.math_warpgroups * launch.math_registers;
  const int pool = (launch.math_warpgroups + 1) * at_launch;
  if (asked > pool) {
    result.obstacles.push_back(
        fmt::format("setmaxnreg: a loader of {} and {} math warpgroups of {} registers are {}, over the pool of {} ({} "
                    "× {} at launch with {} threads); the kernel would hang",
                    launch.loader_registers, launch.math_warpgroups, launch.math_registers, asked, pool,
                    launch.math_warpgroups + 1, at_launch, result.resources.threads));
  }
}

void check_registers(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device) {
  Resources& resources = result.resources;
  const int at_launch = launch_registers(device, resources.threads, launch.blocks_per_multiprocessor);
  const bool moves_registers = launch.loader_registers > 0 || launch.math_registers > 0;
  resources.registers_available = moves_registers ? launch.math_registers : at_launch;
  if (moves_registers) {
    check_register_pool(result, launch, at_launch);
  }
  if (resources.registers_per_thread > resources.registers_available) {
    result.obstacles.push_back(fmt::format("registers: a math thread needs about {}, over the {} that {} give it",
                                           resources.registers_per_thread, resources.registers_available,
                                           moves_registers
                                               ? std::string("setmaxnreg would")
                                               : fmt::format("{} threads × {} blocks a multiprocessor",
                                                             resources.threads, launch.blocks_per_multiprocessor)));
  }
}

void check_cluster(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device) {
  if (launch.cluster > device.max_cluster || (launch.cluster & (launch.cluster - 1)) != 0) {
    result.obstacles.push_back(fmt::format("cluster: {} blocks; it must be a power of two up to the limit of {}",
                                           launch.cluster, device.max_cluster));
  }
}

}  // namespace

int launch_registers(const DeviceSpec& device, int threads, int blocks_per_multiprocessor) noexcept {
  const int share = device.registers_per_multiprocessor / std::max(1, threads * blocks_per_multiprocessor);
  return std::min(share, device.max_registers_per_thread) / register_step * register_step;
}

void add_shared_obstacles(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device) {
  check_threads(result, launch, device);
  check_shared(result, launch, device);
  check_registers(result, launch, device);
  check_cluster(result, launch, device);
  if (launch.stages < launch.least_stages) {
    result.obstacles.push_back(
        fmt::format("stages: {}; a pipeline needs at least {}", launch.stages, launch.least_stages));
  }
  const int columns = result.resources.tensor_memory_columns;
  if (columns > device.tensor_memory_columns) {
    result.obstacles.push_back(
        fmt::format("tensor memory: {} columns are over the limit of {}", columns, device.tensor_memory_columns));
  }
}

}  // namespace thresher::planner
