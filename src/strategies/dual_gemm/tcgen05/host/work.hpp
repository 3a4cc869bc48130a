#pragma once
/// What `tcgen05` says of its work.
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/work_model.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

[[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Config& config);

/// `count` tiles with `k` along K, for whoever has more than one size of them.
[[nodiscard]] TensorTiles tiles(const DualGemmProblem& problem, const Config& config, std::int64_t count);

}  // namespace thresher::strategies::dual_gemm::tcgen05
