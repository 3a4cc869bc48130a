#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/attention_call.hpp"
#include "ops/product_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {

strategies::PlannedCall planned_call(const ProductProblem& problem, const DualGemmOptions& options,
                                     const DeviceSpec& device) {
  return choose_product(problem, request_of(options), DeviceKind::cuda, device);
}

strategies::PlannedCall planned_call(const AttentionProblem& problem, const AttentionOptions& options,
                                     const DeviceSpec& device) {
  return attention_call(problem, options, device);
}

planner::Choices choices(const ProductProblem& problem, const DualGemmOptions& options, const DeviceSpec& device) {
  return product_choices(problem, request_of(options), DeviceKind::cuda, device);
}

planner::Choices choices(const AttentionProblem& problem, const AttentionOptions& options, const DeviceSpec& device) {
  return attention_choices(problem, options, device);
}

planner::Prediction forecast(const strategies::PlannedCall& call, const DeviceSpec& device,
                             const planner::Calibration& calibration) {
  if (call.work.parts.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the planner has no words for the work of the strategy {}", call.strategy));
  }
  return planner::predict(call.work, device, calibration);
}

}  // namespace thresher::ops
