#pragma once
/// What `fused` says of its work.
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm::fused {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
