#pragma once
/// Gate "honest" in a tournament.
#include <memory>

#include "arena/gates/match.hpp"

namespace thresher::arena {

/// The experiments of honesty/ on one of the suite's problems, with a secret seed.
[[nodiscard]] std::unique_ptr<Gate> make_honest_gate();

}  // namespace thresher::arena
