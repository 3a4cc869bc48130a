#include "arena/problem.hpp"

#include <fmt/format.h>

namespace thresher::arena {

std::string label(const Problem& problem) {
  const DualGemmProblem& gemm = problem.dual_gemm;
  std::string text =
      fmt::format("{}x{}x{} {}*{}->{}", gemm.m, gemm.n, gemm.k, name(gemm.a), name(gemm.b), name(gemm.out));
  if (gemm.activation.kind != ActivationKind::silu) {
    text += fmt::format(" {}", name(gemm.activation.kind));
  }
  if (gemm.activation.kind == ActivationKind::swiglu_clamped) {
    text += fmt::format("({},{},{})", gemm.activation.alpha, gemm.activation.limit, gemm.activation.up_offset);
  }
  if (problem.scale_layout == ScaleLayout::blocked) {
    text += " blocked";
  }
  return text;
}

}  // namespace thresher::arena
