#pragma once
/// Small problems on which strategies show their kernels.
#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::grouped_gemm {

struct SampleExtents {
  std::int64_t experts;
  std::int64_t rows;
  std::int64_t n;
  std::int64_t k;
};

/// The problem, as large as that.
inline ProductProblem with_extents(ProductProblem problem, const SampleExtents& extents) {
  problem.experts = problem.is_dense() ? 1 : extents.experts;
  problem.rows = extents.rows;
  problem.n = extents.n;
  problem.k = extents.k;
  problem.expected_rows = 0;
  problem.tokens = problem.layout == ProductRows::gathered ? (extents.rows + 1) / 2 : 0;
  problem.row_ids_divisor = problem.layout == ProductRows::gathered ? 2 : 1;
  return problem;
}

}  // namespace thresher::strategies::grouped_gemm
