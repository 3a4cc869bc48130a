#pragma once
/// The device code of the float64 definition.
#include <string>

#include "strategies/device_program.hpp"

namespace thresher::strategies::gemm::reference {

inline std::string kernel_expression() { return "thresher::strategies::gemm::reference::dual_gemm<double>"; }

inline DeviceProgram program() {
  return {.title = "reference",
          .text = "#include \"strategies/gemm/reference/device/kernel.hpp\"\n",
          .kernels = {kernel_expression()},
          .options = {}};
}

}  // namespace thresher::strategies::gemm::reference
