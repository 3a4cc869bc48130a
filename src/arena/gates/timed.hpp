#pragma once
/// The gate `timed`, and its summary over a whole suite.
#include <memory>
#include <vector>

#include "arena/gates/match.hpp"
#include "arena/gates/verdict.hpp"

namespace thresher::arena {

[[nodiscard]] std::unique_ptr<Gate> make_timed_gate();

/// One for each deciding mode in which every problem was measured.
[[nodiscard]] std::vector<ModeSpeedup> deciding_speedups(const Match& match);

}  // namespace thresher::arena
