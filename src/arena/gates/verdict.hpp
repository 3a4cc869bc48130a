#pragma once
/// From gates and measured speed-ups to a verdict. Pure.
#include <string>
#include <vector>

#include "arena/pitches/pitch.hpp"
#include "arena/results/verdict.hpp"

namespace thresher::arena {

struct Decision {
  Verdict verdict = Verdict::not_judged;
  std::string sentence;
};

/// `gates` are those judged so far, none of them failed. `pitch` may be null: then the terms are a speed-up above 1,
/// beyond the noise, in every deciding mode.
[[nodiscard]] Decision reach_verdict(const std::vector<ModeSpeedup>& modes, const std::vector<GateResult>& gates,
                                     const Pitch* pitch, const std::string& baseline);

}  // namespace thresher::arena
