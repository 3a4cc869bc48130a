#include "arena/dual_gemm/task.hpp"

#include <fmt/format.h>

namespace thresher::arena {

Problem problem_of(const DualGemmTask& task) { return {dual_gemm_operation(), task}; }

Problem problem_of(const DualGemmProblem& problem) { return problem_of(DualGemmTask{problem}); }

const DualGemmProblem& dual_gemm(const Problem& problem) { return problem.as<DualGemmTask>().problem; }
DualGemmProblem& dual_gemm(Problem& problem) { return problem.as<DualGemmTask>().problem; }

std::string label_of(const DualGemmTask& task) {
  const DualGemmProblem& gemm = task.problem;
  std::string text =
      fmt::format("{}x{}x{} {}*{}->{}", gemm.m, gemm.n, gemm.k, name(gemm.a), name(gemm.b), name(gemm.out));
  if (gemm.activation.kind != ActivationKind::silu) {
    text += fmt::format(" {}", name(gemm.activation.kind));
  }
  if (gemm.activation.kind == ActivationKind::swiglu_clamped) {
    text += fmt::format("({},{},{})", gemm.activation.alpha, gemm.activation.limit, gemm.activation.up_offset);
  }
  if (task.scale_layout != ScaleLayout::row_major) {
    text += fmt::format(" {}", name(task.scale_layout));
  }
  return text;
}

}  // namespace thresher::arena
