#pragma once
/// A whole run as JSON, so that reports and tables need nothing else.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

[[nodiscard]] std::string to_json(const RunRecord& run, int indent = -1);

}  // namespace thresher::arena
