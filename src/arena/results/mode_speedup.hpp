#pragma once
/// The speed-up of a contestant over its baseline.
#include <vector>

#include "arena/timing/mode.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// The speed-ups of one deciding mode over all problems of a suite.
struct ModeSpeedup {
  TimingMode mode = TimingMode::cold_burst;
  Estimate geomean;
  Estimate self;             ///< geometric mean of the baseline against itself
  int rounds = 0;            ///< the smallest number over the problems
  std::vector<double> each;  ///< median of each problem
};

}  // namespace thresher::arena
