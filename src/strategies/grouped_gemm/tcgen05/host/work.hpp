#pragma once
/// What `tcgen05` says of its work.
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/tcgen05/config.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::grouped_gemm::tcgen05
