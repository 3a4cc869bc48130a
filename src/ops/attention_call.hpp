#pragma once
/// The planned call of an attention. Choosing it needs no GPU and compiles nothing.
#include <string>

#include "core/device_spec.hpp"
#include "ops/cuda_programs.hpp"
#include "planner/choose.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::ops {

/// The request that `options` stand for, on a GPU or on this CPU.
[[nodiscard]] planner::Request request_of(const AttentionOptions& options, DeviceKind kind);

/// All candidates for the request, ranked.
[[nodiscard]] planner::Choices attention_choices(const AttentionProblem& problem, const AttentionOptions& options,
                                                 const DeviceSpec& device, DeviceKind kind = DeviceKind::cuda);

/// The best call of `options` without an obstacle on a GPU like `device`, or on this CPU. Throws
/// Error(invalid_argument) for an unknown strategy, knob or value, and Error(unsupported) with the reason if no call
/// can run.
[[nodiscard]] strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                                     const DeviceSpec& device, DeviceKind kind = DeviceKind::cuda,
                                                     const CallObstacle& obstacle = {});
[[nodiscard]] strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                                     const Device& device);

/// Why the options cannot run the problem whatever its tensors, in one sentence; empty when they can.
[[nodiscard]] std::string attention_obstacle(const Device& device, const AttentionProblem& problem,
                                             const AttentionOptions& options);

}  // namespace thresher::ops
