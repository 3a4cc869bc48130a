#include "strategies/dual_gemm/reference/program.hpp"

namespace thresher::strategies::dual_gemm::reference {

std::string kernel_expression() { return "thresher::strategies::dual_gemm::reference::dual_gemm<double>"; }

DeviceProgram program() {
  return {.title = "reference",
          .text = "#include \"strategies/dual_gemm/reference/device/kernel.hpp\"\n",
          .kernels = {kernel_expression()},
          .options = {}};
}

}  // namespace thresher::strategies::dual_gemm::reference
