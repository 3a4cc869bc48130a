#pragma once
/// What `two_pass` says of its work.
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm::two_pass {

[[nodiscard]] WorkModel work(const ProductProblem& problem);

}  // namespace thresher::strategies::dual_gemm::two_pass
