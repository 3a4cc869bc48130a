#pragma once
/// The grouped GEMMs of operands of 16 bits, or of FP8, with tokens as the rows of the matrix instruction.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& rows_strategy();

}  // namespace thresher::strategies::grouped_gemm
