#pragma once
/// The code of a kernel for this CPU.
#include "strategies/device_program.hpp"
#include "strategies/host/kernel.hpp"

namespace thresher::arena {

/// The first kernel of `program`: as the build compiled it in, else compiled by this machine's C++ compiler, once, and
/// kept beside the compiled GPU programs. Throws Error(unsupported) where there is no compiler, Error(compile) when it
/// refuses.
[[nodiscard]] strategies::HostKernel host_kernel(const strategies::DeviceProgram& program);

}  // namespace thresher::arena
