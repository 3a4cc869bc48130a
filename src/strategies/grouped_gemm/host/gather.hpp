#pragma once
/// The launch that brings gathered rows of 16 bits together in the workspace.
#include <string>

#include "strategies/grouped_gemm/host/call.hpp"

namespace thresher::strategies::grouped_gemm {

std::string gather_kernel_name();
DeviceProgram gather_program();

/// Where it leaves them.
struct GatheredRows {
  std::size_t piece = 0;  ///< of the workspace
  std::size_t offset = 0;
};
/// Adds the piece and, as the call's first step, the launch.
GatheredRows add_gathering(const GroupedProblem& problem, bool dependent, PlannedCall& call);

/// The same rows for the product's tensor maps.
[[nodiscard]] TokenRows token_rows(const CallTensors& call, const GatheredRows& gathered, machine::ElementType element);

}  // namespace thresher::strategies::grouped_gemm
