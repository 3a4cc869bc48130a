#include "strategies/attention/samples.hpp"

#include <algorithm>

#include "core/integers.hpp"
#include "strategies/attention/launch.hpp"

namespace thresher::strategies::attention {

std::vector<Sample<AttentionProblem>> long_sequences() {
  std::vector<Sample<AttentionProblem>> all;
  for (const Format format : {Format::fp16, Format::bf16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      all.push_back({{.queries = 4096, .keys = 4096, .head_dim = head_dim, .format = format}, {}});
    }
  }
  return all;
}

AttentionProblem dense_like(const AttentionProblem& problem, std::int64_t queries, std::int64_t keys) {
  return {.heads = 2,
          .kv_heads = 2,
          .queries = queries,
          .keys = keys,
          .head_dim = problem.head_dim,
          .value_dim = problem.value_dim,
          .format = problem.format,
          .softcap = has_general_logits(problem) ? 2.0F : 0.0F};
}

std::vector<AttentionProblem> ragged_like(const AttentionProblem& problem, std::int64_t tile_rows, std::int64_t keys) {
  AttentionProblem causal = dense_like(problem, tile_rows + 3, keys);
  causal.causal = true;
  causal.batch = 2;
  causal.heads = causal.kv_heads = 1;
  AttentionProblem window = dense_like(problem, 75, 60);
  window.window_left = 10;
  window.window_right = 20;
  window.heads = 4;
  AttentionProblem lengths =
      dense_like(problem, std::min<std::int64_t>(tile_rows, 128) + 9, std::min<std::int64_t>(keys, 203) + 87);
  lengths.batch = 4;
  lengths.causal = true;
  lengths.variable_length = true;
  return {causal, window, lengths};
}

AttentionProblem in_pages(AttentionProblem problem, std::int64_t page) {
  problem.variable_length = true;
  problem.causal = true;
  problem.page_size = page;
  problem.pages = problem.batch * ceil_div(problem.keys, page);
  return problem;
}

AttentionProblem paged_like(const AttentionProblem& problem, const PagedExtents& extents) {
  AttentionProblem small = problem;
  small.batch = extents.batch;
  small.kv_heads = std::min(problem.kv_heads, extents.max_kv_heads);
  small.heads = std::min(problem.heads / problem.kv_heads, extents.max_group) * small.kv_heads;
  small.queries = extents.queries;
  small.keys = extents.keys;
  small.pages = extents.batch * ceil_div(extents.keys, problem.page_size);
  return small;
}

}  // namespace thresher::strategies::attention
