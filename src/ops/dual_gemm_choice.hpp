#pragma once
/// Which strategy runs a dual GEMM, with which knobs: a pure function of the problem, what is asked for and the device.
#include <string>
#include <vector>

#include "ops/call_choice.hpp"

namespace thresher::ops {

using DualGemmRequest = planner::Request;

/// Why the strategy that is asked for is not made for the problem's formats or for the device; empty when it is.
[[nodiscard]] std::string dual_gemm_format_obstacle(DeviceKind kind, const DeviceSpec& device,
                                                    const DualGemmProblem& problem, const DualGemmOptions& options);
[[nodiscard]] std::string dual_gemm_format_obstacle(const Device& device, const DualGemmProblem& problem,
                                                    const DualGemmOptions& options);
/// Throws Error(invalid_argument) for a strategy, a knob or a value that there is not on the device, whether or not the
/// strategy can run the problem.
void check_dual_gemm_knobs(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options);
/// Why it cannot run the problem with these knobs whatever its tensors; empty when it can.
[[nodiscard]] std::string dual_gemm_obstacle(const Device& device, const DualGemmProblem& problem,
                                             const DualGemmOptions& options);

/// The candidate that is predicted to be fastest among those without an obstacle: of the strategy that is asked for, or
/// of all that compete, or else of those that are there for what no other takes. Throws Error(unsupported) with what is
/// in the way, Error(invalid_argument) for knobs that do not exist.
[[nodiscard]] strategies::PlannedCall choose_dual_gemm(const DualGemmProblem& problem, const DualGemmRequest& request,
                                                       DeviceKind kind, const DeviceSpec& device,
                                                       const TensorObstacle& obstacle = {});

/// The same for `device`: what was measured fastest on it (ops/tuning.hpp), where that still exists and has no
/// obstacle.
[[nodiscard]] strategies::PlannedCall choose_tuned(const Device& device, const DualGemmProblem& problem,
                                                   const DualGemmOptions& options, const TensorObstacle& obstacle = {});

/// A call for each number of rows, each chosen as a plan for so many rows chooses it, all for the same packed weights;
/// those that launch alike are one. The rows ascend.
[[nodiscard]] std::vector<PlannedRows> planned_calls(const Device& device, const DualGemmProblem& problem,
                                                     const DualGemmOptions& options,
                                                     const TensorObstacle& obstacle = {});

}  // namespace thresher::ops
