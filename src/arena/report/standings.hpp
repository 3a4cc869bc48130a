#pragma once
/// The standings of a tournament as text.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// The standings of every suite, then the claims of pitches and the quality of predictions.
[[nodiscard]] std::string standings(const RunRecord& run);

}  // namespace thresher::arena
