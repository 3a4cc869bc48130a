#pragma once
/// What a configuration of the grouped GEMMs with packed weights launches.
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/packed/config.hpp"
#include "strategies/planned_call.hpp"

namespace thresher::strategies::grouped_gemm::packed {

/// `config` has no obstacle. `multiprocessors` are those that blocks can stay on.
[[nodiscard]] PlannedCall planned_call(const ProductProblem& problem, const Config& config, int multiprocessors);

}  // namespace thresher::strategies::grouped_gemm::packed
