#pragma once
/// Small problems on which strategies show their kernels.
#include <cstdint>
#include <vector>

#include "core/integers.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::gemm {

struct SampleExtents {
  std::int64_t experts = 1;
  std::int64_t rows = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
};

/// The problem, as large as that.
inline ProductProblem with_extents(ProductProblem problem, const SampleExtents& extents) {
  const bool is_gathered = problem.layout == ProductRows::gathered;
  problem.experts = problem.is_dense() ? 1 : extents.experts;
  problem.rows = extents.rows;
  problem.n = extents.n;
  problem.k = extents.k;
  problem.expected_rows = 0;
  problem.tokens = is_gathered ? (extents.rows + 1) / 2 : 0;
  problem.row_ids_divisor = is_gathered ? 2 : 1;
  return problem;
}
inline ProductProblem with_extents(const ProductProblem& problem, std::int64_t rows, std::int64_t n, std::int64_t k) {
  return with_extents(problem, {.rows = rows, .n = n, .k = k});
}

/// With as many outputs as what shares a scale takes.
inline ProductProblem with_whole_scales(ProductProblem problem) {
  problem.n = round_up(problem.n, std::int64_t{format_traits(problem.out).n_multiple});
  return problem;
}

/// The samples that are problems of one product.
inline std::vector<Sample<ProductProblem>> of_product(std::vector<Sample<ProductProblem>> samples, Product product) {
  std::erase_if(samples, [&](const Sample<ProductProblem>& one) { return product_of(one.problem) != product; });
  return samples;
}

}  // namespace thresher::strategies::gemm
