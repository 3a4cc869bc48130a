#pragma once
/// The launch that requantises outputs which a product left in float32 in the workspace.
#include <string>

#include "strategies/grouped_gemm/host/call.hpp"

namespace thresher::strategies::grouped_gemm {

/// `out` is requantised.
std::string requantise_rows_kernel_name(Format out);
DeviceProgram requantise_rows_program();

/// The same problem with outputs in float32: what the product before such a launch is planned for.
[[nodiscard]] GroupedProblem unrounded(GroupedProblem problem);
/// A call that was planned for unrounded(problem), behind it the launch.
[[nodiscard]] PlannedCall with_requantising(PlannedCall call, const GroupedProblem& problem);
/// What that adds to the product's work.
[[nodiscard]] WorkModel with_requantising(WorkModel work, const GroupedProblem& problem);

}  // namespace thresher::strategies::grouped_gemm
