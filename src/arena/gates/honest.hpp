#pragma once
/// Gate "honest" in a tournament.
#include <memory>

#include "arena/gates/match.hpp"

namespace thresher::arena {

/// The experiments of honesty/ on one of the suite's problems, with a seed that is told nobody before.
[[nodiscard]] std::unique_ptr<Gate> make_honest_gate();

}  // namespace thresher::arena
