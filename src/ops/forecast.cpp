#include "ops/forecast.hpp"

#include <fmt/format.h>

#include "ops/attention_call.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "ops/grouped_choice.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {

using strategies::gemm::Product;

strategies::PlannedCall planned_call(const DualGemmProblem& problem, const DualGemmOptions& options,
                                     const DeviceSpec& device) {
  return choose_dual_gemm(problem, request_of(options), DeviceKind::cuda, device);
}

strategies::PlannedCall planned_call(const AttentionProblem& problem, const AttentionOptions& options,
                                     const DeviceSpec& device) {
  return attention_call(problem, options, device);
}

strategies::PlannedCall planned_call(const GroupedProblem& problem, const GroupedOptions& options,
                                     const DeviceSpec& device) {
  return choose_grouped(problem, request_of(options), DeviceKind::cuda, device);
}

planner::Choices choices(const DualGemmProblem& problem, const DualGemmOptions& options, const DeviceSpec& device) {
  return planner::choose(strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda), problem,
                         request_of(options), device);
}

planner::Choices choices(const AttentionProblem& problem, const AttentionOptions& options, const DeviceSpec& device) {
  return planner::choose(strategies::attention::registry().of(DeviceKind::cuda), problem,
                         request_of(options, DeviceKind::cuda), device);
}

planner::Choices choices(const GroupedProblem& problem, const GroupedOptions& options, const DeviceSpec& device) {
  return planner::choose(strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda), problem,
                         request_of(options), device);
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
