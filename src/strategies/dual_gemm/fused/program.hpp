#pragma once
/// The device code of the 16-bit dual GEMM for one set of knobs, and the table of its knobs.
#include <string>
#include <string_view>

#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// "interleaved": the strategy whose kernel multiplies so.
std::string_view name(Order order);

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
