#pragma once
/// What a problem of the dual GEMM is in the arena.
#include <string>

#include "arena/operation/problem.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

struct DualGemmTask {
  DualGemmProblem problem;
  ScaleLayout scale_layout = ScaleLayout::row_major;  ///< of every operand whose scales may lie so
  bool operator==(const DualGemmTask&) const = default;
};

[[nodiscard]] const Operation& dual_gemm_operation();

[[nodiscard]] Problem problem_of(const DualGemmTask& task);
[[nodiscard]] Problem problem_of(const DualGemmProblem& problem);
/// Throw Error(internal) for a problem of another operation.
[[nodiscard]] const DualGemmProblem& dual_gemm(const Problem& problem);
[[nodiscard]] DualGemmProblem& dual_gemm(Problem& problem);

/// "256x4096x7168 nvfp4*nvfp4->fp16", followed by what is not the default.
[[nodiscard]] std::string label_of(const DualGemmTask& task);

}  // namespace thresher::arena
