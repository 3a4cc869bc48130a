#pragma once
/// What `two_pass` says of its work.
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::two_pass {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem);

}  // namespace thresher::strategies::dual_gemm::two_pass
