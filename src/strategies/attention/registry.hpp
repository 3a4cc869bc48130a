#pragma once
/// Every strategy of attention.
#include "strategies/registry.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

[[nodiscard]] Registry<AttentionProblem>& registry();

/// For long sequences: producer and consumer warpgroups, and pipelines of keys and values.
const Strategy<AttentionProblem>& pipelined_strategy();
/// For problems too small to fill the machine: the blocks of a cluster share the keys of a tile of queries.
const Strategy<AttentionProblem>& split_strategy();
/// For a paged KV cache: every block processes as many chunks of keys as any other, whatever the lengths are. With one
/// sequence the blocks of each tile's cluster do.
const Strategy<AttentionProblem>& stream_k_strategy();
/// For a paged KV cache and sequences of few and of many queries in one call: `stream_k` takes those with few,
/// `pipelined` the others.
const Strategy<AttentionProblem>& mixed_strategy();
/// One warp for a query: short and obviously right. It is the fallback, and the baseline of comparisons.
const Strategy<AttentionProblem>& simple_strategy();
/// One thread for a query, as one would write it first, and the two next steps. They exist for comparison.
const Strategy<AttentionProblem>& rows_strategy();
const Strategy<AttentionProblem>& rows_shared_strategy();
const Strategy<AttentionProblem>& rows_coalesced_strategy();
/// The CPU's: blocks of queries and keys; the matrix of logits never exists as a whole.
const Strategy<AttentionProblem>& blockwise_strategy();

}  // namespace thresher::strategies::attention
