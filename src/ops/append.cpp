#include "thresher/append.hpp"

#include <fmt/format.h>

#include "cpu/append.hpp"
#include "ops/validate_append.hpp"
#include "thresher/error.hpp"

namespace thresher {

Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options) {
  ops::validate(problem);
  if (options.threads < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("options.threads is {}, expected 0 (all) or more", options.threads));
  }
  if (device.kind() != DeviceKind::cpu) {
    throw Error(ErrorCode::unsupported,
                fmt::format("this version appends on the CPU, not on {}: plan on Device::cpu()", device.name()));
  }
  return {problem, options};
}

void Append::run(Stream, const AppendTensors& tensors) const {
  ops::validate_run(problem_, tensors, {});
  cpu::append(problem_, tensors, options_.threads);
}

}  // namespace thresher
