#pragma once
/// What `packed` says of its work.
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm::packed {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::packed
