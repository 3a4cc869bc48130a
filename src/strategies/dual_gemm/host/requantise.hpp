#pragma once
/// Outputs that a kernel of the dual GEMM leaves in float32, requantised by the grouped products' launch.
#include "strategies/planned_call.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

/// The same problem with outputs in float32: what the product before such a launch is planned for.
[[nodiscard]] DualGemmProblem unrounded(DualGemmProblem problem);
/// A call that was planned for unrounded(problem), whose last step is the product, behind it the launch.
[[nodiscard]] PlannedCall with_output_quantization(PlannedCall call, const DualGemmProblem& problem);
/// What that adds to the product's work.
[[nodiscard]] WorkModel with_output_quantization(WorkModel work, const DualGemmProblem& problem);

}  // namespace thresher::strategies::dual_gemm
