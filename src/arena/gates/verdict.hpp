#pragma once
/// From gates and measured speed-ups to a verdict. Pure.
#include <string>
#include <vector>

#include "arena/gates/gate.hpp"
#include "arena/suites/pitch.hpp"
#include "arena/timing/statistics.hpp"

namespace thresher::arena {

/// The speed-ups of one deciding mode over all problems of a suite.
struct ModeSpeedup {
  std::string mode;
  Estimate geomean;
  Estimate self;             ///< geometric mean of the baseline against itself
  int rounds = 0;            ///< the fewest of any problem
  std::vector<double> each;  ///< median of each problem
};

struct Verdict {
  std::string word;  ///< "accepted", "rejected", "within noise", "not judged"
  std::string sentence;
};

/// `gates` are those judged so far, none of them failed. `pitch` may be null: then the terms are a speed-up above 1,
/// beyond the noise, in every deciding mode.
[[nodiscard]] Verdict reach_verdict(const std::vector<ModeSpeedup>& modes, const std::vector<GateResult>& gates,
                                    const Pitch* pitch, const std::string& baseline);

}  // namespace thresher::arena
