#pragma once
/// The packed NVFP4 kernel in the planner's words and back, and which configuration runs a problem: pure functions.
#include <string>

#include "planner/dual_gemm_config.hpp"
#include "strategies/dual_gemm/packed/config.hpp"

namespace thresher::ops {

/// The planner's words in the kernel's. Throws Error(unsupported) naming the knob that the kernel does not have.
strategies::dual_gemm::packed::Config packed_config(const DualGemmProblem& problem,
                                                    const planner::DualGemmConfig& planned);

/// The kernel's words in the planner's: weights along the rows of the matrix instruction, gate and up interleaved.
planner::DualGemmConfig planned_config(const strategies::dual_gemm::packed::Config& config);

/// The numerics that `options` ask raw NVFP4 weights to be packed for: those of its knobs when it has any.
Numerics packing_numerics(const DualGemmOptions& options);

/// What runs `problem`, whose weights are NVFP4: `knobs` as planner::text writes them, or, when they are empty, the
/// measured choice for `numerics` (strategies/dual_gemm/packed/choose.hpp). Knobs have numerics of their own; those
/// that name nothing else ("fast") get the measured choice for them. Throws Error(unsupported) for knobs that cannot
/// run.
strategies::dual_gemm::packed::Config choose_packed(const DualGemmProblem& problem, const std::string& knobs,
                                                    int multiprocessors, Numerics numerics = Numerics::exact);

}  // namespace thresher::ops
