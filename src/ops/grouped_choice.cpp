#include "ops/grouped_choice.hpp"

#include <algorithm>

#include "ops/cuda_device_spec.hpp"
#include "strategies/gemm/dense.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {

using strategies::PlannedCall;
using strategies::gemm::Product;
using strategies::gemm::strategies_of;

std::string grouped_format_obstacle(DeviceKind kind, const DeviceSpec& device, const GroupedProblem& problem,
                                    const GroupedOptions& options) {
  return options.strategy.empty() ? ""
                                  : named_strategy(strategies_of(Product::grouped, kind), options.strategy)
                                        .unsupported_reason(problem, device)
                                        .value_or("");
}

std::string grouped_format_obstacle(const Device& device, const GroupedProblem& problem,
                                    const GroupedOptions& options) {
  return grouped_format_obstacle(device.kind(), spec_of(device), problem, options);
}

std::string grouped_obstacle(const Device& device, const GroupedProblem& problem, const GroupedOptions& options) {
  if (std::string sentence = grouped_format_obstacle(device, problem, options); !sentence.empty()) {
    return sentence;
  }
  try {
    (void)choose_grouped(problem, request_of(options), device.kind(), spec_of(device));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

PlannedCall choose_grouped(const GroupedProblem& problem, const planner::Request& request, DeviceKind kind,
                           const DeviceSpec& device, const TensorObstacle& obstacle) {
  return choose_call(strategies_of(Product::grouped, kind), problem, request, device, obstacle);
}

PlannedCall with_bounds(PlannedCall call, const GroupedProblem& problem, Bounds bounds, DeviceKind kind) {
  switch (bounds) {
    case Bounds::given: return call;
    case Bounds::none: return strategies::grouped_gemm::without_offsets(std::move(call));
    case Bounds::routed: return strategies::moe_layer::with_routing(std::move(call), problem, kind);
  }
  return call;
}

void require_grouped_strategy(const Device& device, const std::string& strategy) {
  if (!strategy.empty()) {
    (void)named_strategy(strategies_of(Product::grouped, device.kind()), strategy);
  }
}

std::vector<PlannedRows> planned_calls(const Device& device, const GroupedProblem& problem,
                                       const GroupedOptions& options, Bounds bounds, const TensorObstacle& obstacle) {
  GroupedProblem sized = problem;
  sized.n = std::max<std::int64_t>(problem.n, 1);
  sized.tokens = std::max<std::int64_t>(problem.tokens, 1);
  const std::int64_t experts = problem.layout == RowLayout::slots ? problem.experts : 1;
  return calls_by_rows(problem.rows, obstacle, [&](std::int64_t rows, const TensorObstacle& shares_weights) {
    sized.rows = rows;
    sized.expected_rows = std::min(problem.expected_rows, rows * experts);
    PlannedCall call = choose_grouped(sized, request_of(options), device.kind(), spec_of(device), shares_weights);
    return with_bounds(std::move(call), sized, bounds, device.kind());
  });
}

}  // namespace thresher::ops
