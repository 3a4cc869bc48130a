#pragma once
/// The device code of the dual GEMM of 16-bit operands on tcgen05, and the table of its knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {

const KnobTable<Config>& knob_table();

/// One configuration.
DeviceProgram program(const Config& config);
std::string kernel_name(const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
