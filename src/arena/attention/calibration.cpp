// Times of attention that the planner is fitted to.
#include "arena/attention/parts.hpp"
#include "arena/attention/task.hpp"

namespace thresher::arena {
namespace {

void add(std::vector<CalibrationCase>& all, const AttentionProblem& problem, const char* strategy) {
  all.push_back({problem_of(AttentionTask{problem}), {std::string(attention_operation().name()), strategy}});
}

}  // namespace

std::vector<CalibrationCase> attention_calibration_cases() {
  std::vector<CalibrationCase> all;
  const auto of = [](std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t head_dim, bool causal) {
    return AttentionProblem{.batch = batch,
                            .heads = heads,
                            .kv_heads = heads,
                            .queries = length,
                            .keys = length,
                            .head_dim = head_dim,
                            .format = Format::bf16,
                            .causal = causal};
  };
  for (const bool causal : {false, true}) {
    add(all, of(1, 10, 384, 64, causal), "split");
    add(all, of(1, 10, 384, 64, causal), "pipelined");
    add(all, of(2, 16, 3072, 64, causal), "pipelined");
    add(all, of(2, 12, 3072, 128, causal), "pipelined");
  }
  return all;
}

}  // namespace thresher::arena
