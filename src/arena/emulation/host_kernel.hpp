#pragma once
/// The code of a kernel for this CPU.
#include "strategies/device_program.hpp"
#include "strategies/host/kernel.hpp"

namespace thresher::arena {

/// The kernel `expression` of `program`: as the build compiled it in, else compiled by this machine's C++ compiler,
/// once, and kept beside the compiled GPU programs. Throws Error(unsupported) where there is no compiler,
/// Error(compile) when it refuses.
[[nodiscard]] strategies::HostKernel host_kernel(const strategies::DeviceProgram& program,
                                                 const std::string& expression);
[[nodiscard]] inline strategies::HostKernel host_kernel(const strategies::DeviceProgram& program) {
  return host_kernel(program, program.kernels.front());
}

}  // namespace thresher::arena
