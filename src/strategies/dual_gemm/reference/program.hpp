#pragma once
/// The device code of the float64 definition.
#include <string>

#include "strategies/device_program.hpp"

namespace thresher::strategies::dual_gemm::reference {

DeviceProgram program();
std::string kernel_expression();

}  // namespace thresher::strategies::dual_gemm::reference
