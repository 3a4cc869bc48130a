#pragma once
/// What `tcgen05_plain` says of its work.
#include "strategies/grouped_gemm/tcgen05_plain/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

[[nodiscard]] WorkModel work(const GroupedProblem& problem, const Config& config);

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
