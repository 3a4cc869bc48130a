#pragma once
/// What `columns` says of its work.
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/columns/config.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::grouped_gemm::columns {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::grouped_gemm::columns
