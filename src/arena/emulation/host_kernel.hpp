#pragma once
/// A kernel compiled for this CPU.
#include "strategies/device_program.hpp"
#include "strategies/host/kernel.hpp"

namespace thresher::arena {

/// The kernel `expression` of `program`. The build compiled it in, or this machine's C++ compiler compiles it once and
/// caches it beside the GPU programs. Throws Error(unsupported) without a compiler, Error(compile) when the compiler
/// fails.
[[nodiscard]] strategies::HostKernel host_kernel(const strategies::DeviceProgram& program,
                                                 const std::string& expression);
[[nodiscard]] inline strategies::HostKernel host_kernel(const strategies::DeviceProgram& program) {
  return host_kernel(program, program.kernels.front());
}

}  // namespace thresher::arena
