#pragma once
/// A run as JSON: all there is, so that reports and tables are made from it alone.
#include <string>

#include "arena/results/record.hpp"

namespace thresher::arena {

[[nodiscard]] std::string to_json(const RunRecord& run, int indent = -1);

}  // namespace thresher::arena
