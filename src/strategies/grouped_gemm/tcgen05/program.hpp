#pragma once
/// The device code of the grouped GEMMs on tcgen05, and the table of their knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/grouped_gemm/tcgen05/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// Every kernel that packs weights, and the one that prepares the rows of tiles of `config`.
DeviceProgram packing_program();
std::string pack_kernel_name(int matrices);
DeviceProgram preparation_program(const Config& config);
std::string prepare_kernel_name(const Config& config);

}  // namespace thresher::strategies::grouped_gemm::tcgen05
