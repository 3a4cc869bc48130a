#pragma once
/// Every strategy of the dual GEMM.
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm {

/// Those of a kind of device; the first is what a reader should know first, not what is always chosen.
[[nodiscard]] Strategies<ProductProblem> strategies_of(DeviceKind kind);

/// Adds one behind the others, for the life of the process; `strategy` must live as long. Not while another thread asks
/// for strategies. Throws Error(invalid_argument) for a name that its kind of device already has.
void register_strategy(const Strategy<ProductProblem>& strategy);

}  // namespace thresher::strategies::dual_gemm
