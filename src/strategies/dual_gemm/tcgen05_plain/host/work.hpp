#pragma once
/// What `tcgen05_plain` says of its work.
#include "strategies/dual_gemm/tcgen05_plain/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_plain {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_plain
