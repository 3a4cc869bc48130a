#include "arena/operation/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thresher/error.hpp"

namespace thresher::arena {

std::string label(const Problem& problem) { return problem.operation().label(problem); }

void require_known(const ContestantSpec& spec, const Device& device, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
}

std::vector<HostTensor> Operation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  std::vector<HostTensor> varied;
  std::int64_t step = 1;
  for (const HostTensor& input : inputs) {
    varied.push_back(rotate_rows(input, static_cast<std::int64_t>(index) * step));
    step += 2;
  }
  return varied;
}

PlanRequest Operation::plan_request(const ContestantSpec& spec) const {
  PlanRequest request{.strategy = spec.strategy, .knobs = {}};
  for (const auto& [knob, value] : spec.knobs) {
    request.knobs += fmt::format("{}{}={}", request.knobs.empty() ? "" : " ", knob, value);
  }
  return request;
}

MachineCode Operation::machine_code(const Problem&, const ContestantSpec&, const DeviceSpec&) const {
  throw Error(ErrorCode::unsupported, fmt::format("{} has no strategy for GPUs", name()));
}

PlannerResult Operation::outlook(const Problem&, const ContestantSpec&, const DeviceSpec&,
                                 const planner::Calibration&) const {
  return {.infeasible_reasons = {fmt::format("{} has no strategy for GPUs", name())}, .is_unknown = true};
}

PreparedVariant Operation::prepare_variant(const Problem&, const PlanRequest&, const Device&, Memory&,
                                           const std::vector<DeviceSet>&, const KernelVariant&) const {
  throw Error(ErrorCode::unsupported, fmt::format("{} has no kernels that can be looked into", name()));
}

}  // namespace thresher::arena
