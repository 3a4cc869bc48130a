#pragma once
/// The device code of the dual GEMM of plain operands on tcgen05, and the table of its knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

const KnobTable<Config>& knob_table();

/// One configuration.
DeviceProgram program(const Config& config);
std::string kernel_name(const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
