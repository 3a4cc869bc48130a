#pragma once
#include <string>

#include "strategies/attention/params.hpp"
#include "strategies/strategy.hpp"
#include "thresher/attention.hpp"

namespace thresher::strategies::attention {

/// One thread for a query, the way one would write it first; and the two steps that come next. There to be compared
/// with.
const Strategy<AttentionProblem>& rows_strategy();
const Strategy<AttentionProblem>& rows_shared_strategy();
const Strategy<AttentionProblem>& rows_coalesced_strategy();

/// The kernel's name expression.
[[nodiscard]] std::string rows_expression(Format format, Staging staging);

}  // namespace thresher::strategies::attention
