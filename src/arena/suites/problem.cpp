#include "arena/suites/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace thresher::arena {
namespace {

std::string label_of(const DualGemmProblem& gemm, ScaleLayout scale_layout) {
  std::string text =
      fmt::format("{}x{}x{} {}*{}->{}", gemm.m, gemm.n, gemm.k, name(gemm.a), name(gemm.b), name(gemm.out));
  if (gemm.activation.kind != ActivationKind::silu) {
    text += fmt::format(" {}", name(gemm.activation.kind));
  }
  if (gemm.activation.kind == ActivationKind::swiglu_clamped) {
    text += fmt::format("({},{},{})", gemm.activation.alpha, gemm.activation.limit, gemm.activation.up_offset);
  }
  if (scale_layout == ScaleLayout::blocked) {
    text += " blocked";
  }
  return text;
}

std::string two(std::int64_t first, std::int64_t second, char between) {
  return first == second ? fmt::to_string(first) : fmt::format("{}{}{}", first, between, second);
}

std::string label_of(const AttentionTask& task) {
  const AttentionProblem& p = task.problem;
  std::string text = fmt::format("{}x{}x{}x{} {}", p.batch, two(p.heads, p.kv_heads, '/'), two(p.queries, p.keys, ':'),
                                 p.head_dim, name(p.format));
  text += p.causal ? " causal" : "";
  if (p.window_left >= 0 || p.window_right >= 0) {
    text += fmt::format(" window({},{})", p.window_left, p.window_right);
  }
  if (p.scale) {
    text += fmt::format(" scale({})", *p.scale);
  }
  if (p.softcap > 0) {
    text += fmt::format(" softcap({})", p.softcap);
  }
  if (p.variable_length) {
    text += fmt::format(" lengths({}:{})", fmt::join(task.query_lengths, ","), fmt::join(task.key_lengths, ","));
  } else if (task.rows_first) {
    text += " rows-first";
  }
  return text + (task.lse ? " lse" : "");
}

}  // namespace

std::string label(const Problem& problem) {
  return problem.operation == "attention" ? label_of(problem.attention)
                                          : label_of(problem.dual_gemm, problem.scale_layout);
}

}  // namespace thresher::arena
