#pragma once
/// The device code of the grouped GEMMs of plain operands for one set of knobs, and the table of its knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/grouped_gemm/rows/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::grouped_gemm::rows {

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

}  // namespace thresher::strategies::grouped_gemm::rows
