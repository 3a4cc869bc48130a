#pragma once
/// Products of 16-bit operands or FP8 on Hopper, of dense, contiguous, masked and gathered rows. Two strategies share
/// knobs and launch, and differ in which side of the instruction tokens are.
#include <string>

#include "strategies/device_program.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/wgmma/config.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

/// Weights are rows of the matrix instruction, tokens its columns.
const Strategy<ProductProblem>& columns_strategy();
/// For many tokens: they are rows of the matrix instruction.
const Strategy<ProductProblem>& rows_strategy();

namespace wgmma {

const KnobTable<Config>& knob_table(bool tokens_are_rows);

/// Its one kernel, as a name expression.
std::string kernel_expression(const Config& config);
DeviceProgram program(const Config& config);

}  // namespace wgmma
}  // namespace thresher::strategies::gemm
