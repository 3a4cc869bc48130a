#pragma once
/// What `fused` says of its work.
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::fused {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
