#include "strategies/dual_gemm/two_pass/host/work.hpp"

#include "strategies/dual_gemm/host/tile_work.hpp"

namespace thresher::strategies::dual_gemm::two_pass {
namespace {

/// Read in NVFP4 and written in 16 bits.
MemoryPass conversion(const char* title, double elements) {
  return {title, elements * (stored_bits(Format::nvfp4) + 16) / 8};
}

}  // namespace

WorkModel work(const DualGemmProblem& problem) {
  WorkModel work;
  if (problem.b == Format::nvfp4) {
    work.parts.emplace_back(conversion("converting the weights", 2.0 * static_cast<double>(problem.n * problem.k)));
  }
  if (problem.a == Format::nvfp4) {
    work.parts.emplace_back(conversion("converting the tokens", static_cast<double>(problem.m * problem.k)));
  }
  work.parts.emplace_back(LibraryProducts{.count = 2, .m = problem.m, .n = problem.n, .k = problem.k});
  const double outputs = static_cast<double>(problem.m * problem.n);
  work.parts.emplace_back(MemoryPass{"the activation", outputs * (2 * 4 + bits(problem.out) / 8.0)});
  return work;
}

}  // namespace thresher::strategies::dual_gemm::two_pass
