#pragma once
/// The code of a kernel for this CPU.
#include "kernels/device_program.hpp"
#include "kernels/host/kernel.hpp"

namespace thresher::arena {

/// The first kernel of `program`. Throws Error(unsupported) when it is not compiled into the library.
[[nodiscard]] kernels::HostKernel host_kernel(const kernels::DeviceProgram& program);

}  // namespace thresher::arena
