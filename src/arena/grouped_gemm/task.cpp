#include "arena/grouped_gemm/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/gemm_problem.hpp"

namespace thresher::arena {
namespace {

/// "80,176,3*0,64": what comes several times in a row once.
std::string listed(const std::vector<std::int64_t>& counts) {
  std::string text;
  for (auto at = counts.begin(); at != counts.end();) {
    const auto end = std::find_if(at, counts.end(), [&](std::int64_t count) { return count != *at; });
    text += text.empty() ? "" : ",";
    text += end - at > 2 ? fmt::format("{}*{}", end - at, *at) : std::to_string(*at);
    at += end - at > 2 ? end - at : 1;
  }
  return text;
}

std::string activation_text(const Activation& activation) {
  std::string text = fmt::format(" {}", name(activation.kind));
  if (activation.kind == ActivationKind::swiglu_clamped) {
    text += fmt::format("({},{},{})", activation.alpha, activation.limit, activation.up_offset);
  }
  return text;
}

}  // namespace

std::int64_t GroupedTask::owned_rows() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t GroupedTask::active_experts() const noexcept {
  return std::count_if(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
}

GroupedTask completed(GroupedTask task) {
  GroupedProblem& p = task.problem;
  p.experts = std::ssize(task.counts);
  p.expected_rows = task.owned_rows();
  if (p.layout == RowLayout::slots) {
    p.rows = std::max(p.rows, task.counts.empty() ? 0 : *std::max_element(task.counts.begin(), task.counts.end()));
    return task;
  }
  p.rows = task.owned_rows() + 2 * task.margin;
  if (p.layout == RowLayout::gathered && task.routed) {
    p.tokens = task.routed->tokens;
    p.row_ids_divisor = task.routed->top_k;
  }
  return task;
}

GroupedTask dense_task(const GemmProblem& problem, ScaleLayout scale_layout) {
  GroupedTask task;
  task.problem = ops::one_expert(problem);
  task.counts = {problem.m};
  task.scale_layout = scale_layout;
  task.is_dense = true;
  return completed(std::move(task));
}

GemmProblem gemm_of(const GroupedTask& task) {
  const GroupedProblem& p = task.problem;
  return {.m = p.rows, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .out = p.out, .bias = p.bias};
}

Problem problem_of(GroupedTask task) {
  const Operation& operation = task.is_dense             ? gemm_operation()
                               : task.problem.activation ? grouped_dual_gemm_operation()
                                                         : grouped_gemm_operation();
  return {operation, std::move(task)};
}

std::string label_of(const GroupedTask& task) {
  const GroupedProblem& p = task.problem;
  std::string text = fmt::format("{}x{}x{} {}*{}->{}", task.is_dense ? p.rows : p.experts, p.n, p.k, name(p.a),
                                 name(p.b), name(p.out));
  if (task.is_dense) {
    // Its one expert owns every row.
  } else if (task.routed) {
    text += fmt::format(" {} rows ({}x{} of {} {})", task.owned_rows(), task.routed->tokens, task.routed->top_k,
                        task.routed->total_experts, name(task.routed->routing));
  } else {
    text += fmt::format(" rows({})", listed(task.counts));
  }
  if (p.layout == RowLayout::slots) {
    text += fmt::format(" slots({})", p.rows);
  } else if (p.layout == RowLayout::gathered) {
    text += fmt::format(" gathered({}/{})", p.tokens, p.row_ids_divisor);
  }
  if (p.activation && p.activation->kind != ActivationKind::silu) {
    text += activation_text(*p.activation);
  }
  if (p.bias) {
    text += fmt::format(" bias({})", name(task.bias_format));
  }
  text += p.row_weights ? " row-weights" : "";
  if (task.order) {
    text += fmt::format(" {}", name(*task.order));
  }
  text += task.margin > 0 ? fmt::format(" margin({})", task.margin) : "";
  text += task.skipped > 0 ? fmt::format(" skipped({})", task.skipped) : "";
  if (task.scale_layout != ScaleLayout::row_major) {
    text += fmt::format(" {}", name(task.scale_layout));
  }
  return text;
}

}  // namespace thresher::arena
