#pragma once
/// The grouped GEMMs with NVFP4 weights that are packed once.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<ProductProblem>& packed_strategy();

}  // namespace thresher::strategies::grouped_gemm
