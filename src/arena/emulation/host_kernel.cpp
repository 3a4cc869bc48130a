#include "arena/emulation/host_kernel.hpp"

#include "kernels/host/compiled_in.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

kernels::HostKernel host_kernel(const kernels::DeviceProgram& program) {
  if (const kernels::HostKernel kernel = kernels::find_compiled_in(program.kernels.front())) {
    return kernel;
  }
  throw Error(ErrorCode::unsupported, program.title + ": these knobs are not compiled in for emulation");
}

}  // namespace thresher::arena
