#include "strategies/dual_gemm/two_pass/host/work.hpp"

#include "strategies/dual_gemm/host/tile_work.hpp"

namespace thresher::strategies::dual_gemm::two_pass {
namespace {

/// Read as they are stored and written in 16 bits.
void add_conversion(WorkModel& work, const char* title, Format format, double elements) {
  if (format_traits(format).has_scales()) {
    work.parts.emplace_back(MemoryPass{title, elements * (stored_bits(format) + 16) / 8});
  }
}

}  // namespace

WorkModel work(const ProductProblem& problem) {
  WorkModel work;
  add_conversion(work, "converting the weights", problem.b, 2.0 * static_cast<double>(problem.n * problem.k));
  add_conversion(work, "converting the tokens", problem.a, static_cast<double>(problem.rows * problem.k));
  work.parts.emplace_back(LibraryProducts{.count = 2, .m = problem.rows, .n = problem.n, .k = problem.k});
  const double outputs = static_cast<double>(problem.rows * problem.n);
  work.parts.emplace_back(MemoryPass{"the activation", outputs * (2 * 4 + bits(problem.out) / 8.0)});
  return work;
}

}  // namespace thresher::strategies::dual_gemm::two_pass
