#pragma once
/// The device code of `two_pass`, and the names of its kernels.
#include <string>

#include "strategies/device_program.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::two_pass {

/// All kernels of the strategy, for every format and activation.
DeviceProgram program();

/// NVFP4 to fp16 or bf16.
std::string widen_nvfp4_kernel(Format to);
/// fp16 or bf16 to float32.
std::string widen_to_float_kernel(Format from);
/// 16-bit rows to contiguous ones.
std::string copy_rows_kernel();
std::string activate_kernel(ActivationKind kind, Format out);

}  // namespace thresher::strategies::dual_gemm::two_pass
