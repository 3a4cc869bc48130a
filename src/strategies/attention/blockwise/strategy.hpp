#pragma once
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// This CPU's: blocks of queries and keys; the matrix of logits never exists as a whole.
const Strategy<AttentionProblem>& blockwise_strategy();

}  // namespace thresher::strategies::attention
