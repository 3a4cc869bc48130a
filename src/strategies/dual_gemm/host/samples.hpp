#pragma once
/// Small problems that strategies of the dual GEMM are tried on.
#include <cstdint>

#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

inline DualGemmProblem with_extents(DualGemmProblem problem, std::int64_t m, std::int64_t n, std::int64_t k) {
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

}  // namespace thresher::strategies::dual_gemm
