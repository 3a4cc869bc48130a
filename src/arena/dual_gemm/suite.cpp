// The [[problem]]s of suites about the dual GEMM.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/task.hpp"

namespace thresher::arena {
namespace {

void check_k(const ConfigTable& table, const DualGemmProblem& gemm) {
  const int multiple = std::max(format_traits(gemm.a).k_multiple, format_traits(gemm.b).k_multiple);
  if (gemm.k % multiple != 0) {
    table.fail("k", fmt::format("is {}, but must be a multiple of {} for these formats", gemm.k, multiple));
  }
}

/// Parameters that no activation of the table takes are refused: they would be passed over in silence.
Activation activation_parameters(const ProblemTable& tables, const std::vector<ActivationKind>& kinds) {
  Activation activation;
  const bool are_taken = std::find(kinds.begin(), kinds.end(), ActivationKind::swiglu_clamped) != kinds.end();
  const auto read = [&](const std::string& key, float& value) {
    const ConfigTable& table = tables.holder(key);
    if (const auto number = table.optional_number(key)) {
      value = static_cast<float>(*number);
      if (!std::isfinite(value)) {
        table.fail(key, fmt::format("is {}, which no float of 32 bits holds", *number));
      }
      if (!are_taken) {
        table.fail(key, "is of the activation swiglu_clamped, which is not among these");
      }
    }
  };
  read("alpha", activation.alpha);
  read("limit", activation.limit);
  read("up_offset", activation.up_offset);
  if (!(activation.limit > 0)) {
    tables.holder("limit").fail("limit", "must be greater than 0");
  }
  return activation;
}

}  // namespace

void DualGemmOperation::add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const {
  const auto ms = tables.extents("m", 1);
  const auto ns = tables.extents("n", 1);
  const auto ks = tables.extents("k", 1);
  const auto as = choices<Format>(tables, "a", named(operand_formats), std::nullopt);
  const auto bs = choices<Format>(tables, "b", named(operand_formats), std::nullopt);
  const auto outs = choices<Format>(tables, "out", named(output_formats), std::nullopt);
  const auto kinds = choices<ActivationKind>(tables, "activation", named(all_activation_kinds), ActivationKind::silu);
  const auto layouts = choices<ScaleLayout>(tables, "scale_layout", named(all_scale_layouts), ScaleLayout::row_major);
  DualGemmTask task;
  DualGemmProblem& gemm = task.problem;
  gemm.activation = activation_parameters(tables, kinds);
  const auto add = [&] {
    check_k(tables.problem, gemm);
    add_once(tables, "m", problem_of(task), problems);
  };
  const auto by_m = [&] { each(ms, gemm.m, add); };
  const auto by_n = [&] { each(ns, gemm.n, by_m); };
  const auto by_k = [&] { each(ks, gemm.k, by_n); };
  const auto by_out = [&] { each(outs, gemm.out, by_k); };
  const auto by_b = [&] { each(bs, gemm.b, by_out); };
  const auto by_a = [&] { each(as, gemm.a, by_b); };
  const auto by_kind = [&] { each(kinds, gemm.activation.kind, by_a); };
  each(layouts, task.scale_layout, by_kind);
}

}  // namespace thresher::arena
