#pragma once
/// Thresher's own attention as a contestant.
#include <memory>

#include "arena/contestants/contestant.hpp"
#include "thresher/attention.hpp"

namespace thresher::arena {

/// The strategy that plan() takes when it is not told one.
inline constexpr const char* planned_strategy = "planned";

/// Strategies of `device` with the baseline first, and `planned_strategy` where there are several.
[[nodiscard]] std::vector<std::string> attention_contestants(const Device& device);

/// What a contestant asks `plan` for. Throws Error(invalid_argument) for a knob that is no whole number.
[[nodiscard]] AttentionOptions attention_options(const ContestantSpec& spec);

/// Knobs: threads on the CPU; dependent_launch (0 or 1) and the strategy's own on a GPU. Throws Error for others.
[[nodiscard]] std::unique_ptr<Contestant> make_attention_contestant(const ContestantSpec& spec, const Device& device);

}  // namespace thresher::arena
