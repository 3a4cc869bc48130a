#pragma once
/// Which kernels a plan of a dual GEMM launches on a GPU, without planning it: no GPU and no weights are needed.
#include <optional>
#include <string>
#include <vector>

#include "planner/dual_gemm_config.hpp"
#include "strategies/device_program.hpp"
#include "strategies/dual_gemm/packed/config.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

struct PlannedKernel {
  strategies::DeviceProgram program;
  std::string kernel;  ///< one of the program's name expressions
  int dynamic_shared_bytes = 0;
  std::optional<planner::DualGemmConfig> fused;                 ///< of a 16-bit fused kernel
  std::optional<strategies::dual_gemm::packed::Config> packed;  ///< of the kernel over packed NVFP4 weights
};

struct PlannedCode {
  std::vector<PlannedKernel> kernels;  ///< the one that multiplies first
  std::string foreign;                 ///< whose code it also runs, which is not here to be read; empty for nobody's
};

/// Throws Error(unsupported) with the reason when the strategy cannot take the problem on `device`.
PlannedCode dual_gemm_code(const DeviceSpec& device, const DualGemmProblem& problem, const DualGemmOptions& options);

}  // namespace thresher::ops
