#pragma once
/// What `tcgen05` says of its work.
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/work_model.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

[[nodiscard]] WorkModel work(const ProductProblem& problem, const Config& config);

/// `count` tiles with `k` along K, for whoever has more than one size of them.
[[nodiscard]] TensorTiles tiles(const ProductProblem& problem, const Config& config, std::int64_t count);

}  // namespace thresher::strategies::dual_gemm::tcgen05
