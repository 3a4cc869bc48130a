#pragma once
/// A problem of attention in the arena.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "arena/operation/problem.hpp"
#include "thresher/attention.hpp"

namespace thresher::arena {

/// How a suite says the lengths of sequences in pages: one by one, the same for all, or keys drawn by a fixed seed
/// whose mean is said.
enum class SequenceLengths : std::uint8_t { listed, equal, mixed };

/// An attention of a suite: what is computed, and how its tensors lie in memory.
struct AttentionTask {
  AttentionProblem problem;
  bool lse = false;         ///< the logarithms of the rows' sums are outputs too
  bool rows_first = false;  ///< memory order [B,S,H,D] instead of [B,H,S,D]; always so with variable length; in a page
                            ///< [page,H,D] instead of [H,page,D]
  /// Variable length: queries and keys of each sequence, problem.batch of them. Where keys are in pages, data of
  /// another seed have the same pairs in another order.
  std::vector<std::int64_t> query_lengths{};
  std::vector<std::int64_t> key_lengths{};
  SequenceLengths lengths = SequenceLengths::listed;
  bool operator==(const AttentionTask&) const = default;

  [[nodiscard]] static auto members(auto& task) {
    return std::tie(task.problem, task.lse, task.rows_first, task.query_lengths, task.key_lengths, task.lengths);
  }
};

[[nodiscard]] const Operation& attention_operation();

[[nodiscard]] Problem problem_of(AttentionTask task);

/// A task of variable length with the batch, the rows and the pages that its lengths make: pages that no sequence uses
/// too, and places in the table behind those that the longest uses.
[[nodiscard]] AttentionTask completed(AttentionTask task);

/// As long as problem.batch, problem.queries and problem.keys say: sequences of so many queries, and of so many keys,
/// all alike or `mixed` with so many in the mean. Completed.
[[nodiscard]] AttentionTask with_lengths(AttentionTask task, SequenceLengths lengths);

/// Batch, heads (query heads/key heads), queries (queries:keys) and head dimension (of keys/of values):
/// "1x32/8x2048x128 bf16 causal", followed by what is not the default.
[[nodiscard]] std::string label_of(const AttentionTask& task);

}  // namespace thresher::arena
