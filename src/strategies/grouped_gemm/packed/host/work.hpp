#pragma once
/// What `packed` says of its work.
#include "strategies/grouped_gemm/packed/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm::packed {

[[nodiscard]] WorkModel work(const GroupedProblem& problem, const Config& config);

}  // namespace thresher::strategies::grouped_gemm::packed
