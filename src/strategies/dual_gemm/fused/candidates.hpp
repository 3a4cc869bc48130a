#pragma once
/// The configurations worth predicting for a problem.
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "thresher/knobs.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// The default configuration with what `problem` determines.
[[nodiscard]] Config for_problem(const ProductProblem& problem, Order order);

/// Each has `knobs`; some may have obstacles.
[[nodiscard]] std::vector<Config> candidates(const ProductProblem& problem, Order order, const Knobs& knobs,
                                             const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm::fused
