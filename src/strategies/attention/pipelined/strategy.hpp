#pragma once
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// For long sequences: loader and math warpgroups, and rings of keys and values.
const Strategy<AttentionProblem>& pipelined_strategy();

/// The kernel's name expression.
[[nodiscard]] std::string pipelined_expression(const pipeline::attention::StreamConfig& config, Format format,
                                               Logits logits);

}  // namespace thresher::strategies::attention
