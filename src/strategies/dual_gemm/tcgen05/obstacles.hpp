#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/dual_gemm/tcgen05/config.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> obstacles(const DualGemmProblem& problem, const Config& config,
                                                 const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm::tcgen05
