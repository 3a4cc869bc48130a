#pragma once
/// Which strategy runs a grouped product, with which knobs: a pure function of the problem, what is asked for and the
/// device.
#include <string>
#include <vector>

#include "ops/call_choice.hpp"
#include "ops/grouped_backend.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::ops {

/// As dual_gemm_format_obstacle, dual_gemm_obstacle and choose_dual_gemm (ops/dual_gemm_choice.hpp).
[[nodiscard]] std::string grouped_format_obstacle(DeviceKind kind, const DeviceSpec& device,
                                                  const GroupedProblem& problem, const GroupedOptions& options);
[[nodiscard]] std::string grouped_format_obstacle(const Device& device, const GroupedProblem& problem,
                                                  const GroupedOptions& options);
[[nodiscard]] std::string grouped_obstacle(const Device& device, const GroupedProblem& problem,
                                           const GroupedOptions& options);
[[nodiscard]] strategies::PlannedCall choose_grouped(const GroupedProblem& problem, const planner::Request& request,
                                                     DeviceKind kind, const DeviceSpec& device,
                                                     const TensorObstacle& obstacle = {});
/// The call for such bounds of one that brings them.
[[nodiscard]] strategies::PlannedCall with_bounds(strategies::PlannedCall call, const GroupedProblem& problem,
                                                  Bounds bounds, DeviceKind kind);

/// Throws Error(invalid_argument) naming the strategies there are when `strategy` is neither empty nor one of them.
void require_grouped_strategy(const Device& device, const std::string& strategy);

/// A call for each number of rows of C (with slots: of one slot), all for the same packed weights. The rows ascend.
[[nodiscard]] std::vector<PlannedRows> planned_calls(const Device& device, const GroupedProblem& problem,
                                                     const GroupedOptions& options, Bounds bounds,
                                                     const TensorObstacle& obstacle = {});

/// The rows of a call by which one of those is taken.
[[nodiscard]] inline std::int64_t rows_of(const GroupedTensors& tensors) {
  return tensors.c.shape[tensors.c.rank == 3 ? 1 : 0];
}

}  // namespace thresher::ops
