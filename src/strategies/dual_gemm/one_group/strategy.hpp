#pragma once
/// The grouped kernels of plain operands as strategies of the dual GEMM, under their names: one group owns all rows.
/// They take FP8, and 16 bits where outputs are requantised.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<ProductProblem>& columns_strategy();
const Strategy<ProductProblem>& rows_strategy();

}  // namespace thresher::strategies::dual_gemm
