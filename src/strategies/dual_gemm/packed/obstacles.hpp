#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <optional>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "thresher/format.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Why no kernel with packed weights multiplies these, if so; the grouped ones are made for the same.
[[nodiscard]] std::optional<std::string> unsupported_reason(Format tokens, Format weights, const DeviceSpec& device);

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> infeasible_reasons(const Config& config, const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm::packed
