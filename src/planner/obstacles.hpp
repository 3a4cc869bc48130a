#pragma once
/// Limits that every contestant of a device shares.
#include <string>
#include <vector>

#include "planner/feasible.hpp"

namespace thresher::planner {

/// The knobs of a launch that the shared limits look at.
struct LaunchShape {
  int math_warpgroups = 0;  ///< beside one loader warpgroup
  int blocks_per_multiprocessor = 1;
  int cluster = 1;
  int loader_registers = 0;
  int math_registers = 0;
  int stages = 1;
  int least_stages = 2;
};

/// Registers a thread gets at launch with `threads` threads a block: a multiple of 8, at most 255 (a multiple of 8
/// below).
[[nodiscard]] int launch_registers(const DeviceSpec& device, int threads, int blocks_per_multiprocessor) noexcept;

/// Fills resources.registers_available and adds what is over a limit: threads, shared memory, the register pool,
/// tensor memory, the cluster, the stages.
void add_shared_obstacles(Feasibility& result, const LaunchShape& launch, const DeviceSpec& device);

}  // namespace thresher::planner
