#pragma once
/// The launch that requantises outputs which a product left in float32 in the workspace.
#include <cstddef>
#include <string>

#include "strategies/gemm/tensors.hpp"
#include "strategies/grouped_gemm/host/call.hpp"

namespace thresher::strategies::grouped_gemm {

/// `out` is requantised.
std::string quantize_rows_kernel_name(Format out);
DeviceProgram quantize_rows_program();

/// The same problem with outputs in float32: what the product before such a launch is planned for.
[[nodiscard]] ProductProblem unrounded(ProductProblem problem);
/// A call that was planned for unrounded(problem), whose last step is the product, and behind it the launch.
[[nodiscard]] PlannedCall with_output_quantization(PlannedCall call, const ProductProblem& problem);
/// What that adds to the product's work.
[[nodiscard]] WorkModel with_output_quantization(WorkModel work, const ProductProblem& problem);

}  // namespace thresher::strategies::grouped_gemm
