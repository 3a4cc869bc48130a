#pragma once
/// Whether a set of knobs can be compiled and run at all.
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/gemm/problem.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// Registers that a thread has before any hand-over: a multiple of 8.
[[nodiscard]] int launch_registers(const Config& config, const DeviceSpec& device);
/// What a multiplying thread needs at the least.
[[nodiscard]] int math_registers_needed(const Config& config);

/// One sentence with the number and the limit for each thing that stands in the way; empty when nothing does.
[[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Config& config,
                                                          const DeviceSpec& device);

}  // namespace thresher::strategies::dual_gemm::fused
