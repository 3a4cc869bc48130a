#pragma once
/// Small problems that strategies of the dual GEMM are tried on.
#include <cstdint>

#include "core/integers.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

inline DualGemmProblem with_extents(DualGemmProblem problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

/// With as many outputs as what shares a scale takes.
inline DualGemmProblem with_whole_scales(DualGemmProblem problem) {
  problem.n = round_up(problem.n, std::int64_t{format_traits(problem.out).n_multiple});
  return problem;
}

}  // namespace thresher::strategies::dual_gemm
