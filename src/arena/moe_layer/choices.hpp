#pragma once
/// The top-k assignments of a layer's calls.
#include <cstdint>
#include <vector>

#include "arena/moe_layer/task.hpp"

namespace thresher::arena {

/// Experts of every choice, [tokens · top_k]: below 0 or from the layer's experts on where it is skipped.
using ChosenExperts = std::vector<std::int32_t>;

/// Counts that all calls of a task have in common.
struct ChoiceCounts {
  std::int64_t rows = 0;            ///< choices that are not skipped
  std::int64_t active_experts = 0;  ///< that have any
  std::int64_t active_tokens = 0;   ///< that have any
};
[[nodiscard]] ChoiceCounts choice_counts(const LayerTask& task);

/// The experts of one call. Which expert is chosen how often, by which token and in which place, the seed says; how
/// many rows the experts have between them is the same in every call, so that all are as much work. At least one choice
/// is not skipped.
[[nodiscard]] ChosenExperts chosen_experts(const LayerTask& task, std::uint64_t seed);

/// Choices of another kind, which `change` says: equally many of each expert, one expert for all, one expert a token,
/// every second expert without any, or random.
[[nodiscard]] ChosenExperts other_choices(const LayerTask& task, std::uint64_t change, std::uint64_t seed);

}  // namespace thresher::arena
