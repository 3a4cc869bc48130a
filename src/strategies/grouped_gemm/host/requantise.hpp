#pragma once
/// The launch that requantises outputs which a product left in float32 in the workspace.
#include <cstddef>
#include <string>

#include "strategies/grouped_gemm/host/call.hpp"
#include "strategies/grouped_gemm/tensors.hpp"

namespace thresher::strategies::grouped_gemm {

/// `out` is requantised.
std::string quantize_rows_kernel_name(Format out);
DeviceProgram quantize_rows_program();

/// The same problem with outputs in float32: what the product before such a launch is planned for.
[[nodiscard]] GroupedProblem unrounded(GroupedProblem problem);
/// A call that was planned for unrounded(problem), behind it the launch, which takes a grouped call's tensors; `output`
/// is C's place among those of the product, its last step.
[[nodiscard]] PlannedCall with_output_quantization(PlannedCall call, const GroupedProblem& problem,
                                                   std::size_t output = output_index);
/// What that adds to the product's work.
[[nodiscard]] WorkModel with_output_quantization(WorkModel work, const GroupedProblem& problem);

}  // namespace thresher::strategies::grouped_gemm
