#pragma once
/// The kernels of dense products of 16-bit operands on Hopper. Three strategies share them and differ in the order of
/// products.
#include <span>
#include <string>
#include <string_view>

#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/wgmma/fused/config.hpp"
#include "strategies/knob_table.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::gemm::fused {

/// "interleaved": the strategy whose kernel multiplies so.
std::string_view name(Order order);

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// The launch of a feasible `config`.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

/// Profiled kernels that are compiled for the CPU, and kernels that leave a part out: clean, but not right.
std::span<const Config> profiled_configs();

}  // namespace thresher::strategies::gemm::fused
