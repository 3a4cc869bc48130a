#pragma once
/// Small problems that strategies of the dual GEMM are tried on.
#include <cstdint>

#include "core/integers.hpp"
#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::dual_gemm {

inline ProductProblem with_extents(ProductProblem problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  problem.rows = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

/// With as many outputs as what shares a scale takes.
inline ProductProblem with_whole_scales(ProductProblem problem) {
  problem.n = round_up(problem.n, std::int64_t{format_traits(problem.out).n_multiple});
  return problem;
}

}  // namespace thresher::strategies::dual_gemm
