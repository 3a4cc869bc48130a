#pragma once
/// The device code of the grouped GEMMs with packed weights for one set of knobs, and the table of its knobs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/grouped_gemm/packed/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::grouped_gemm::packed {

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// Every kernel that packs weights.
DeviceProgram packing_program();
std::string pack_kernel_name(Numerics numerics, int matrices);
std::string row_factors_kernel_name(int matrices);

}  // namespace thresher::strategies::grouped_gemm::packed
