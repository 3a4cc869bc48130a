#pragma once
/// A contestant's knobs in the words of the public API.
#include "arena/operation/contestant_spec.hpp"
#include "thresher/attention.hpp"

namespace thresher::arena {

/// The strategy that plan() takes when it is not told one.
inline constexpr const char* planned_strategy = "planned";

/// The options that a contestant asks `plan` for. Throws Error(invalid_argument) for a knob that is no whole number.
[[nodiscard]] AttentionOptions attention_options(const ContestantSpec& spec);

}  // namespace thresher::arena
