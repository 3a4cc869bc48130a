#pragma once
/// The grouped GEMMs of operands of 16 bits, or of FP8, with tokens as the columns of the matrix instruction.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& columns_strategy();

}  // namespace thresher::strategies::grouped_gemm
