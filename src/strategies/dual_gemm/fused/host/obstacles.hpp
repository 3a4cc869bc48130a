#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <string>
#include <vector>

#include "strategies/dual_gemm/fused/config.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> obstacles(const Config& config);

}  // namespace thresher::strategies::dual_gemm::fused
