#pragma once
/// What `tcgen05_plain` says of its work.
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
