#include "arena/emulation/planned_run.hpp"

#include <fmt/format.h>

#include "arena/emulation/host_kernel.hpp"

namespace thresher::arena {

bool only_launches(const strategies::PlannedCall& call) {
  return std::all_of(call.steps.begin(), call.steps.end(), [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  });
}

std::string kernel_expressions(const strategies::PlannedCall& call) {
  std::string all;
  for (const strategies::Step& step : call.steps) {
    all += " " + std::get<strategies::KernelLaunch>(step).expression;
  }
  return all;
}
namespace {

strategies::HostKernel kernel_of(const strategies::KernelLaunch& launch) {
  return host_kernel(launch.program, launch.expression);
}

}  // namespace

PlannedRun::PlannedRun(strategies::PlannedCall call, std::vector<strategies::NamedTensor> tensors, JudgeOutputs judge)
    : judge_(std::move(judge)), call_(std::move(call), std::move(tensors), kernel_of) {}

emulator::Report PlannedRun::run(const emulator::Options& options) {
  call_.poison_outputs();
  return call_.run(options);
}

std::string PlannedRun::wrong() const {
  const Finding finding = judge_();
  return finding.correct ? "" : fmt::format("{}: {}", finding.fault, finding.sentence);
}

}  // namespace thresher::arena
