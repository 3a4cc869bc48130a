#pragma once
/// The launch that asks most of a kernel.
#include <algorithm>

#include "strategies/strategy.hpp"

namespace thresher::arena {

/// `knobs` for a launch that may start before the one ahead of it has ended, where the strategy makes such: the code is
/// the same, and what is right so is right in every launch.
template <class Problem>
Knobs as_dependent(const strategies::Strategy<Problem>& strategy, Knobs knobs) {
  const auto help = strategy.knobs();
  if (std::any_of(help.begin(), help.end(), [](const auto& knob) { return knob.name == "dependent_launch"; })) {
    knobs.set("dependent_launch", "true");
  }
  return knobs;
}

}  // namespace thresher::arena
