#include "ops/dual_gemm_code.hpp"

#include "kernels/dual_gemm/host/geometry.hpp"
#include "kernels/dual_gemm/program.hpp"
#include "kernels/nvfp4/program.hpp"
#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/nvfp4_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

PlannedKernel single_kernel(kernels::DeviceProgram program, int dynamic_shared_bytes) {
  PlannedKernel kernel;
  kernel.kernel = program.kernels.front();
  kernel.program = std::move(program);
  kernel.dynamic_shared_bytes = dynamic_shared_bytes;
  return kernel;
}

PlannedCode packed_code(const DualGemmProblem& problem, const std::string& knobs, int multiprocessors) {
  const kernels::nvfp4::Config config = choose_packed(problem, knobs, multiprocessors);
  PlannedCode code;
  code.kernels.push_back(single_kernel(kernels::nvfp4::program(config), kernels::nvfp4::shared_bytes(config)));
  code.kernels.back().packed = config;
  const bool widens = problem.a == Format::nvfp4;
  if (widens || problem.k % kernels::nvfp4::block_k != 0) {
    code.kernels.push_back(single_kernel(kernels::nvfp4::preparation_program(), 0));
    code.kernels.back().kernel =
        widens ? kernels::nvfp4::widen_tokens_kernel_name() : kernels::nvfp4::pad_tokens_kernel_name();
  }
  return code;
}

PlannedCode fused_code(FusedChoice choice, const DualGemmProblem& problem, int multiprocessors) {
  namespace device_code = kernels::dual_gemm;
  const device_code::Extents extents{problem.m, problem.n, problem.k};
  const device_code::Geometry planned = geometry(choice.config, extents, multiprocessors);
  const device_code::Params params = scalars(choice.config, extents, {0, problem.n}, planned, problem.activation);
  if (params.c_wide == 0) {  // the copy engine cannot address such rows
    choice.config.epilogue = device_code::Epilogue::simt;
    choice.planned.epilogue = planner::Epilogue::simt;
  }
  PlannedCode code;
  code.kernels.push_back(
      single_kernel(device_code::program(choice.config),
                    static_cast<int>(geometry(choice.config, extents, multiprocessors).shared_bytes)));
  code.kernels.back().fused = choice.planned;
  return code;
}

}  // namespace

PlannedCode dual_gemm_code(const planner::DeviceSpec& device, const DualGemmProblem& problem,
                           const PlanOptions& options) {
  const bool is_hopper = device.matrix_unit == planner::MatrixUnit::wgmma;
  const bool is_fused = options.strategy != "two_pass";
  const bool packs = options.strategy.empty() || options.strategy == "packed" || !options.knobs.empty();
  if (problem.b == Format::nvfp4 && is_hopper && is_fused && packs) {
    return packed_code(problem, options.knobs, device.multiprocessors);
  }
  if (is_fused) {
    const bool is_asked_for = !options.strategy.empty() || !options.knobs.empty();
    if (auto choice = choose_fused(problem, {options.strategy, options.knobs}, device)) {
      return fused_code(std::move(*choice), problem, device.multiprocessors);
    }
    if (is_asked_for) {
      throw Error(ErrorCode::unsupported,
                  "strategy " + options.strategy + " cannot take this problem on " + std::string(device.name));
    }
  }
  return {{}, "its products are cuBLASLt's, whose machine code lies in that library"};
}

}  // namespace thresher::ops
