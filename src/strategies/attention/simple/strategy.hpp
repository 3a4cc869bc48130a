#pragma once
#include <string>

#include "strategies/attention/launch.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// One warp for a query: short and obviously right, what everything falls back to and is compared with.
const Strategy<AttentionProblem>& simple_strategy();

/// The kernel's name expression.
[[nodiscard]] std::string simple_expression(const KernelFormats& formats, std::int64_t head_dim,
                                            std::int64_t value_dim);

}  // namespace thresher::strategies::attention
