#include "ops/attention_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/cuda_device_spec.hpp"
#include "ops/product_choice.hpp"
#include "runtime/driver.hpp"
#include "strategies/attention/registry.hpp"

namespace thresher::ops {
namespace {

DeviceSpec table_of(const Device& device) {
  if (device.kind() == DeviceKind::cpu) {
    return cpu_device_spec();
  }
  if (const DeviceSpec spec = cuda_device_spec(device.id().ordinal); spec.matrix_unit != MatrixUnit::none) {
    return spec;
  }
  const runtime::DeviceProperties& properties = runtime::device_properties(device.id().ordinal);
  throw Error(ErrorCode::unsupported,
              fmt::format("attention runs on GPUs of compute capability 9.0 (Hopper), {} has {}.{}: plan on "
                          "Device::cpu()",
                          properties.name, properties.capability_major, properties.capability_minor));
}

}  // namespace

planner::Request request_of(const AttentionOptions& options, DeviceKind kind) {
  planner::Request request{options.strategy, options.knobs};
  if (kind == DeviceKind::cpu) {
    set_threads(options.threads, request.knobs);
  }
  if (kind == DeviceKind::cuda && options.dependent_launch) {
    set_from_option("dependent_launch", "true", request.knobs);
  }
  return request;
}

strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                       const DeviceSpec& device, DeviceKind kind) {
  const auto all = strategies::attention::registry().of(kind);
  const planner::Choices choices = planner::choose(all, problem, request_of(options, kind), device);
  if (choices.ranked.empty()) {
    std::vector<std::string> reasons;
    for (const planner::RefusedStrategy& refused : choices.refused) {
      reasons.push_back(fmt::format("{}: {}", refused.strategy, fmt::join(refused.infeasible_reasons, "; ")));
    }
    throw Error(ErrorCode::unsupported,
                fmt::format("no strategy of attention can run this problem: {}", fmt::join(reasons, "; ")));
  }
  return planner::planned(all, problem, choices.ranked.front(), device);
}

strategies::PlannedCall attention_call(const AttentionProblem& problem, const AttentionOptions& options,
                                       const Device& device) {
  return attention_call(problem, options, table_of(device), device.kind());
}

std::string attention_obstacle(const Device& device, const AttentionProblem& problem, const AttentionOptions& options) {
  try {
    (void)attention_call(problem, options, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace thresher::ops
