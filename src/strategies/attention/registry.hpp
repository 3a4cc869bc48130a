#pragma once
/// Every strategy of attention.
#include "strategies/registry.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

[[nodiscard]] Registry<AttentionProblem>& registry();

}  // namespace thresher::strategies::attention
