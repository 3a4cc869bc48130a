#pragma once
/// The machine code of Thresher's own strategies, and what the audit expects of it.
#include "arena/audit/machine_code.hpp"
#include "core/device_spec.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// The machine code of the kernels that a plan would launch on `device`, compiled for `arch`; no GPU is needed. Without
/// NVRTC only what is built in can be had: the rest is not judged. Throws Error(unsupported) when the strategy cannot
/// take the problem.
[[nodiscard]] MachineCode dual_gemm_machine_code(const DeviceSpec& device, const std::string& arch,
                                                 const DualGemmProblem& problem, const DualGemmOptions& options);

}  // namespace thresher::arena
