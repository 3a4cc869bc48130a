#pragma once
/// Which fused kernel runs a dual GEMM whose operands are both fp16 or both bf16 on a Hopper GPU: a pure function.
#include <optional>
#include <string>
#include <vector>

#include "planner/rank.hpp"
#include "strategies/dual_gemm/fused/config.hpp"

namespace thresher::ops {

struct FusedChoice {
  planner::DualGemmConfig planned;
  strategies::dual_gemm::fused::Config config;
  planner::Prediction prediction;
};

/// What the fused kernels can be asked for.
struct FusedRequest {
  std::string strategy;  ///< empty: any
  std::string knobs;     ///< as planner::text writes a configuration; empty: the planner's choice
};

/// Nothing when the problem is not for these kernels (formats, K whose rows the copy engine cannot address).
/// Throws Error(unsupported) naming the number and the limit when the knobs that were asked for cannot exist.
std::optional<FusedChoice> choose_fused(const DualGemmProblem& problem, const FusedRequest& request,
                                        const DeviceSpec& device);

/// The planner's words in the kernel's. Throws Error(unsupported) for what the kernel does not have.
strategies::dual_gemm::fused::Config kernel_config(const DualGemmProblem& problem,
                                                   const planner::DualGemmConfig& planned);

}  // namespace thresher::ops
