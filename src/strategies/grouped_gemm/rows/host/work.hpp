#pragma once
/// What `rows` says of its work.
#include "strategies/grouped_gemm/rows/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm::rows {

[[nodiscard]] WorkModel work(const GroupedProblem& problem, const Config& config);

}  // namespace thresher::strategies::grouped_gemm::rows
