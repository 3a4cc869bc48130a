#pragma once
/// What the planner says of a contestant before it runs: a pure function, so that any card of its table can be asked
/// about.
#include <string>

#include "planner/predict.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/attention.hpp"

namespace thresher::ops {

/// What `plan` would launch for `options` on a GPU like `device`, whose tuning cache and tensors are not known. Throws
/// Error(unsupported) with what is in the way, Error(invalid_argument) for a strategy or a knob that does not exist.
[[nodiscard]] strategies::PlannedCall planned_call(const DualGemmProblem& problem, const DualGemmOptions& options,
                                                   const DeviceSpec& device);

/// What `plan` would launch for `options` on a GPU like `device`, in the planner's words. Throws Error(unsupported)
/// with the reason when the planner has no words for it.
planner::DualGemmConfig planned_contestant(const DualGemmProblem& problem, const DualGemmOptions& options,
                                           const DeviceSpec& device);

/// What a kernel before the product reads and writes to prepare the tokens: folding, widening or padding them; 0 when
/// nothing has to be done.
double prepared_bytes(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device);

/// One call of `problem` with `options` on a GPU like `device`: the very kernels that `plan` would launch. Throws as
/// planned_contestant.
planner::Prediction forecast(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device,
                             const planner::Calibration& calibration = {});

/// The same of attention, whose strategies on the matrix unit (pipelined, split) the planner knows.
planner::AttentionConfig planned_contestant(const AttentionProblem& problem, const AttentionOptions& options,
                                            const DeviceSpec& device);
planner::Prediction forecast(const AttentionProblem& problem, const AttentionOptions& options, const DeviceSpec& device,
                             const planner::Calibration& calibration = {});

}  // namespace thresher::ops
