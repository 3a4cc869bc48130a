#pragma once
/// The dual GEMM of 16-bit operands on Hopper. Three strategies share one kernel and differ in the order of its
/// products.
#include <string>
#include <string_view>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/wgmma/fused/config.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// Each tile of tokens is loaded once and multiplied by gate and up side by side.
const Strategy<ProductProblem>& interleaved_strategy();
/// The whole gate product, then the whole up product, one fused epilogue.
const Strategy<ProductProblem>& sequential_strategy();
/// As interleaved; two warpgroups alternate, one multiplies while the other finishes its tile.
const Strategy<ProductProblem>& pingpong_strategy();

namespace fused {

/// "interleaved": the strategy whose kernel multiplies so.
std::string_view name(Order order);

const KnobTable<Config>& knob_table();

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

/// A sentence with the number and the limit for each reason why `config` cannot be compiled or run.
[[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                          const DeviceSpec& device);

/// The launch of a feasible `config`.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config);

}  // namespace fused
}  // namespace thresher::strategies::gemm
