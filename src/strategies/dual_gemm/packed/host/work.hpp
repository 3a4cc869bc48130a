#pragma once
/// What `packed` says of its work.
#include "strategies/dual_gemm/packed/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::packed {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::packed
