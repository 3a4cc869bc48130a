#pragma once
/// What a configuration of the grouped GEMMs on tcgen05 launches: packing, preparing rows, the product.
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/tcgen05/config.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

/// `config` has no obstacle. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

}  // namespace thresher::strategies::grouped_gemm::tcgen05
