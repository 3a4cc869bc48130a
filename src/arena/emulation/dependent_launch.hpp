#pragma once
/// The launch that demands most of a kernel.
#include <algorithm>

#include "strategies/strategy.hpp"

namespace thresher::arena {

/// `knobs` with programmatic dependent launch, where the strategy supports it. The code is the same, and code that is
/// right with it is right in every launch.
template <class Problem>
Knobs as_dependent(const strategies::Strategy<Problem>& strategy, Knobs knobs) {
  const auto help = strategy.knobs();
  if (std::any_of(help.begin(), help.end(), [](const auto& knob) { return knob.name == "dependent_launch"; })) {
    knobs.set("dependent_launch", "true");
  }
  return knobs;
}

}  // namespace thresher::arena
