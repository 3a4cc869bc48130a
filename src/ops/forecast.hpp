#pragma once
/// The launches of `plan` on a GPU that need not be here, and their predicted time. All predictions come from here.
#include "core/device_spec.hpp"
#include "planner/choose.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::ops {

using strategies::gemm::ProductProblem;

/// The call that `plan` makes for `options` on a GPU like `device`, without its tuning cache and its tensors. Throws
/// Error(unsupported) with the reasons, and Error(invalid_argument) for an unknown strategy or knob.
[[nodiscard]] strategies::PlannedCall planned_call(const ProductProblem& problem, const DualGemmOptions& options,
                                                   const DeviceSpec& device);
[[nodiscard]] strategies::PlannedCall planned_call(const AttentionProblem& problem, const AttentionOptions& options,
                                                   const DeviceSpec& device);

/// All possible launches in the order in which `plan` prefers them, and the strategies that cannot run. Throws
/// Error(invalid_argument) for an unknown strategy or knob.
[[nodiscard]] planner::Choices choices(const ProductProblem& problem, const DualGemmOptions& options,
                                       const DeviceSpec& device);
[[nodiscard]] planner::Choices choices(const AttentionProblem& problem, const AttentionOptions& options,
                                       const DeviceSpec& device);

/// One call on a GPU like `device`. Throws Error(unsupported) if the planner cannot model its work.
[[nodiscard]] planner::Prediction forecast(const strategies::PlannedCall& call, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {});

/// The same for the call that `plan` makes.
template <class Problem, class Options>
[[nodiscard]] planner::Prediction forecast(const Problem& problem, const Options& options, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {}) {
  return forecast(planned_call(problem, options, device), device, calibration);
}

}  // namespace thresher::ops
