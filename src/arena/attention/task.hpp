#pragma once
/// What a problem of attention is in the arena.
#include <cstdint>
#include <string>
#include <vector>

#include "arena/operation/problem.hpp"
#include "thresher/attention.hpp"

namespace thresher::arena {

/// An attention of a suite: what is computed, and how its tensors lie in memory.
struct AttentionTask {
  AttentionProblem problem;
  bool lse = false;         ///< the logarithms of the rows' sums are outputs too
  bool rows_first = false;  ///< memory order [B,S,H,D] instead of [B,H,S,D]; always so with variable length
  /// Variable length: queries and keys of each sequence, problem.batch of them.
  std::vector<std::int64_t> query_lengths{};
  std::vector<std::int64_t> key_lengths{};
  bool operator==(const AttentionTask&) const = default;
};

[[nodiscard]] const Operation& attention_operation();

[[nodiscard]] Problem problem_of(AttentionTask task);

/// Batch, heads (query heads/key heads), queries (queries:keys) and head dimension: "1x32/8x2048x128 bf16 causal",
/// followed by what is not the default.
[[nodiscard]] std::string label_of(const AttentionTask& task);

}  // namespace thresher::arena
