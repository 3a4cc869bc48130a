#pragma once
/// The kernels of the strategies rows and columns: their knobs, names and programs.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/gemm/wgmma/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::gemm::wgmma {

const KnobTable<Config>& knob_table(bool tokens_are_rows);

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

}  // namespace thresher::strategies::gemm::wgmma
