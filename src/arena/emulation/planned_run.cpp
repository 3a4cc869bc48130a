#include "arena/emulation/planned_run.hpp"

#include "arena/emulation/host_kernel.hpp"

namespace thresher::arena {
namespace {

strategies::HostKernel kernel_of(const strategies::KernelLaunch& launch) {
  return host_kernel(launch.program, launch.expression);
}

}  // namespace

PlannedRun::PlannedRun(strategies::PlannedCall call, std::vector<strategies::NamedTensor> tensors,
                       std::shared_ptr<const void> storage)
    : storage_(std::move(storage)), call_(std::move(call), std::move(tensors), kernel_of) {}

emulator::Report PlannedRun::run(const emulator::Options& options) {
  call_.poison_outputs();
  return call_.run(options);
}

}  // namespace thresher::arena
