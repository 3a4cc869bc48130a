#pragma once
/// The grouped GEMMs with NVFP4 weights that are packed once.
#include "strategies/strategy.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

const Strategy<GroupedProblem>& packed_strategy();

}  // namespace thresher::strategies::grouped_gemm
