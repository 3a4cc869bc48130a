#pragma once
/// The grouped kernels of plain operands as strategies of the dual GEMM, under their names: one group owns all rows.
/// They take FP8, and 16 bits where outputs are requantised.
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

const Strategy<DualGemmProblem>& columns_strategy();
const Strategy<DualGemmProblem>& rows_strategy();

}  // namespace thresher::strategies::dual_gemm
