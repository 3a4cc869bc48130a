#pragma once
/// What `tcgen05_sixteen_bit` says of its work.
#include "strategies/dual_gemm/tcgen05_sixteen_bit/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Config& config);

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
