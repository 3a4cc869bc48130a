#include "arena/gemm/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/gemm/problem.hpp"
#include "thresher/error.hpp"

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

}  // namespace

std::string activation_text(const Activation& activation) {
  if (activation.kind == ActivationKind::silu) {
    return "";
  }
  std::string text = fmt::format(" {}", name(activation.kind));
  if (activation.kind == ActivationKind::situ) {
    text += fmt::format("({},{})", activation.alpha, activation.limit);
  } else if (activation.kind == ActivationKind::swiglu_clamped) {
    text += fmt::format("({},{},{})", activation.alpha, activation.limit, activation.up_offset);
  }
  return text;
}

std::int64_t ProductTask::owned_rows() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t ProductTask::active_experts() const noexcept {
  return std::count_if(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
}

ProductTask completed(ProductTask task) {
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

ProductTask dense_task(const GemmProblem& problem, ScaleLayout scale_layout) {
  ProductTask task;
  task.problem = strategies::gemm::ProductProblem(problem).grouped();
  task.counts = {problem.m};
  task.scale_layout = scale_layout;
  task.is_dense = true;
  return completed(std::move(task));
}

ProductTask dense_task(const DualGemmProblem& p, ScaleLayout scale_layout) {
  ProductTask task =
      dense_task(GemmProblem{.m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .out = p.out}, scale_layout);
  task.problem.activation = p.activation;
  return task;
}

GemmProblem gemm_of(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  return {
      .m = p.rows, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .out = p.out, .bias = p.bias, .activation = p.activation};
}

DualGemmProblem dual_gemm_of(const ProductTask& task) {
  const GroupedProblem& p = task.problem;
  return {.m = p.rows, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .out = p.out, .activation = *p.activation};
}

strategies::gemm::ProductProblem product_problem(const ProductTask& task) {
  using strategies::gemm::ProductProblem;
  if (!task.is_dense) {
    return ProductProblem(task.problem);
  }
  return task.is_dual_gemm() ? ProductProblem(dual_gemm_of(task)) : ProductProblem(gemm_of(task));
}

DualGemmProblem dual_gemm(const Problem& problem) {
  const auto& task = problem.as<ProductTask>();
  if (!task.is_dual_gemm()) {
    throw Error(ErrorCode::internal, "a problem was taken for one of another operation");
  }
  return dual_gemm_of(task);
}

Problem problem_of(ProductTask task) {
  const bool is_dual = is_gated(task.problem.activation);
  const Operation& operation = task.is_dense ? (is_dual ? dual_gemm_operation() : gemm_operation())
                                             : (is_dual ? grouped_dual_gemm_operation() : grouped_gemm_operation());
  return {operation, std::move(task)};
}

Problem problem_of(const DualGemmProblem& problem) { return problem_of(dense_task(problem)); }

std::string label_of(const ProductTask& task) {
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
  text += p.activation ? activation_text(*p.activation) : "";
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
