#pragma once
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// For keys in pages and sequences of few and of many queries in one call: `stream_k` takes those of few, `pipelined`
/// the others.
const Strategy<AttentionProblem>& mixed_strategy();

}  // namespace thresher::strategies::attention
