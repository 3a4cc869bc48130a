#pragma once
#include <string>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/params.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// For problems too small to fill the machine: the blocks of a cluster share the keys of a tile of queries.
const Strategy<AttentionProblem>& split_strategy();

/// The kernel's name expression.
[[nodiscard]] std::string split_expression(const pipeline::attention::SplitConfig& config, Format format,
                                           Logits logits);

}  // namespace thresher::strategies::attention
