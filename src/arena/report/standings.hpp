#pragma once
/// The standings of a tournament as text.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

/// Of every suite, with the claims of pitches and the quality of predictions after them.
[[nodiscard]] std::string standings(const RunRecord& run);

}  // namespace thresher::arena
