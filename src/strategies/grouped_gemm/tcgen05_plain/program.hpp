#pragma once
/// The device code of the grouped GEMMs of 16-bit operands on tcgen05, and the table of their knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/grouped_gemm/tcgen05_plain/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
