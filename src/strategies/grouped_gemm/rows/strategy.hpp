#pragma once
/// The grouped GEMMs of operands of 16 bits, or of FP8, with tokens as the rows of the matrix instruction.
#include "strategies/strategy.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<GroupedProblem>& rows_strategy();

}  // namespace thresher::strategies::grouped_gemm
