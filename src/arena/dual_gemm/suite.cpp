// The [[problem]]s of suites about the dual GEMM.
#include <fmt/format.h>

#include <algorithm>

#include "arena/dual_gemm/activation_keys.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/scale_layout_keys.hpp"
#include "arena/dual_gemm/task.hpp"

namespace thresher::arena {
namespace {

void check_k(const ConfigTable& table, const DualGemmProblem& gemm) {
  const int multiple = std::max(format_traits(gemm.a).k_multiple, format_traits(gemm.b).k_multiple);
  if (gemm.k % multiple != 0) {
    table.fail("k", fmt::format("is {}, but must be a multiple of {} for these formats", gemm.k, multiple));
  }
}

}  // namespace

void DualGemmOperation::add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  const auto ms = tables.extents("m", 1);
  const auto ns = tables.extents("n", 1);
  const auto ks = tables.extents("k", 1);
  const auto as = choices<Format>(tables, "a", named(operand_formats), std::nullopt);
  const auto bs = choices<Format>(tables, "b", named(operand_formats), std::nullopt);
  const auto outs = choices<Format>(tables, "out", named(unscaled_output_formats), std::nullopt);
  const auto activations = activations_of(tables);
  const auto layouts = scale_layouts_of(tables);
  DualGemmTask task;
  DualGemmProblem& gemm = task.problem;
  const auto add = [&] {
    check_k(tables.problem, gemm);
    check_scale_layout(tables, task.scale_layout, {{gemm.a, OperandRole::tokens}, {gemm.b, OperandRole::weights}});
    add_once(tables, "m", problem_of(task), problems);
  };
  const auto by_m = [&] { each(ms, gemm.m, add); };
  const auto by_n = [&] { each(ns, gemm.n, by_m); };
  const auto by_k = [&] { each(ks, gemm.k, by_n); };
  const auto by_out = [&] { each(outs, gemm.out, by_k); };
  const auto by_b = [&] { each(bs, gemm.b, by_out); };
  const auto by_a = [&] { each(as, gemm.a, by_b); };
  const auto by_activation = [&] { each(activations, gemm.activation, by_a); };
  each(layouts, task.scale_layout, by_activation);
}

}  // namespace thresher::arena
