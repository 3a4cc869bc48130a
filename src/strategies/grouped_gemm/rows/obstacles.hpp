#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/grouped_gemm/rows/config.hpp"

namespace thresher::strategies::grouped_gemm::rows {

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                          const DeviceSpec& device);

}  // namespace thresher::strategies::grouped_gemm::rows
