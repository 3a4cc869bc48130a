#pragma once
/// The problems on which attention's kernels are tested, and for which they are compiled ahead.
#include <cstdint>
#include <vector>

#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// One long problem for each format and head dimension: a kernel each, whatever the lengths are.
[[nodiscard]] std::vector<Sample<AttentionProblem>> long_sequences();

/// A dense problem of two heads whose code is that of `problem`, and whose logits are of its kind.
[[nodiscard]] AttentionProblem dense_like(const AttentionProblem& problem, std::int64_t queries, std::int64_t keys);

/// Small problems whose code is `problem`'s. One is causal and larger than a tile; only one is, since it takes most of
/// the time. Another has a window in which some rows see no key, and the last has sequences of several lengths.
[[nodiscard]] std::vector<AttentionProblem> ragged_like(const AttentionProblem& problem, std::int64_t tile_rows,
                                                        std::int64_t keys);

/// `problem`, causal and with a paged KV cache: pages of `page` rows, as many as its sequences can fill.
[[nodiscard]] AttentionProblem in_pages(AttentionProblem problem, std::int64_t page);

/// The extents of a small problem with a paged KV cache.
struct PagedExtents {
  std::int64_t batch;
  std::int64_t max_kv_heads;
  std::int64_t max_group;  ///< query heads of a head of keys
  std::int64_t queries;
  std::int64_t keys;
};
[[nodiscard]] AttentionProblem paged_like(const AttentionProblem& problem, const PagedExtents& extents);

}  // namespace thresher::strategies::attention
