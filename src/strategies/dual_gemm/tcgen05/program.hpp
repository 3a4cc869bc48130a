#pragma once
/// The device code of the dual GEMM on tcgen05, and the names of its kernels.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// Packing, and tokens to what the kernel reads. Needs no architecture in particular.
[[nodiscard]] DeviceProgram preparation_program();
[[nodiscard]] std::string pack_kernel_name();
[[nodiscard]] std::string prepare_tokens_kernel_name();

[[nodiscard]] const KnobTable<Config>& knob_table();

/// One configuration.
[[nodiscard]] DeviceProgram program(const Config& config);
[[nodiscard]] std::string kernel_name(const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05
