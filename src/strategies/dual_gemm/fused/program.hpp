#pragma once
/// The device code of the 16-bit dual GEMM for one set of knobs.
#include <string>
#include <vector>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/fused/config.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// What the planner chooses for the origin's problems on an H200, with either epilogue.
std::vector<Config> default_configs();

/// "interleaved bf16 to bf16, 128 × 64 outputs …": for messages.
std::string title(const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
