#include "arena/attention/task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace thresher::arena {
namespace {

std::string two(std::int64_t first, std::int64_t second, char between) {
  return first == second ? fmt::to_string(first) : fmt::format("{}{}{}", first, between, second);
}

}  // namespace

Problem problem_of(AttentionTask task) { return {attention_operation(), std::move(task)}; }

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

}  // namespace thresher::arena
