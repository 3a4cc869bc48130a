#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/dual_gemm/tcgen05_sixteen_bit/config.hpp"

namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit {

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> obstacles(const Config& config, const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm::tcgen05_sixteen_bit
