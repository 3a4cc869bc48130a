#pragma once
/// The device code of the 16-bit dual GEMM for one set of knobs.
#include <string>

#include "kernels/device_program.hpp"
#include "kernels/dual_gemm/config.hpp"

namespace thresher::kernels::dual_gemm {

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// "interleaved bf16 to bf16, 128 × 64 outputs …": for messages.
std::string title(const Config& config);

}  // namespace thresher::kernels::dual_gemm
