#pragma once
/// What `plan` would launch on a GPU that need not be here, and how long the planner expects it to take. Everybody who
/// predicts asks here, so that there is one answer.
#include "core/device_spec.hpp"
#include "planner/choose.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::ops {

using strategies::gemm::ProductProblem;

/// What `plan` would launch for `options` on a GPU like `device`, whose tuning cache and tensors are not known. Throws
/// Error(unsupported) with what is in the way, Error(invalid_argument) for a strategy or a knob that does not exist.
[[nodiscard]] strategies::PlannedCall planned_call(const ProductProblem& problem, const DualGemmOptions& options,
                                                   const DeviceSpec& device);
[[nodiscard]] strategies::PlannedCall planned_call(const AttentionProblem& problem, const AttentionOptions& options,
                                                   const DeviceSpec& device);

/// Everything that could be launched, in the order in which `plan` prefers it, and what cannot. Throws
/// Error(invalid_argument) for a strategy or a knob that does not exist.
[[nodiscard]] planner::Choices choices(const ProductProblem& problem, const DualGemmOptions& options,
                                       const DeviceSpec& device);
[[nodiscard]] planner::Choices choices(const AttentionProblem& problem, const AttentionOptions& options,
                                       const DeviceSpec& device);

/// One call on a GPU like `device`. Throws Error(unsupported) for a call whose work the planner has no words for.
[[nodiscard]] planner::Prediction forecast(const strategies::PlannedCall& call, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {});

/// The same of what `plan` would launch.
template <class Problem, class Options>
[[nodiscard]] planner::Prediction forecast(const Problem& problem, const Options& options, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {}) {
  return forecast(planned_call(problem, options, device), device, calibration);
}

}  // namespace thresher::ops
