#include "strategies/pause_program.hpp"

namespace thresher::strategies {

std::string pause_kernel() { return "thresher::strategies::pause<unsigned long long>"; }

DeviceProgram pause_program() {
  return {.title = "pause",
          .text = "#include \"strategies/device/pause.hpp\"\n",
          .kernels = {pause_kernel()},
          .options = {}};
}

}  // namespace thresher::strategies
