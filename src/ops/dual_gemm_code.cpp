#include "ops/dual_gemm_code.hpp"

#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "strategies/dual_gemm/fused/host/geometry.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "strategies/dual_gemm/packed/host/launches.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

PlannedKernel single_kernel(strategies::DeviceProgram program, int dynamic_shared_bytes) {
  PlannedKernel kernel;
  kernel.kernel = program.kernels.front();
  kernel.program = std::move(program);
  kernel.dynamic_shared_bytes = dynamic_shared_bytes;
  return kernel;
}

PlannedCode packed_code(const DualGemmProblem& problem, const DualGemmOptions& options, int multiprocessors) {
  namespace device_code = strategies::dual_gemm::packed;
  const device_code::Config config =
      choose_packed(problem, planner_words(options.knobs), multiprocessors, packing_numerics(options));
  PlannedCode code;
  code.kernels.push_back(single_kernel(device_code::program(config), device_code::shared_bytes(config)));
  code.kernels.back().packed = config;
  const bool folds = config.path == device_code::Path::fast;
  const bool widens = problem.a == Format::nvfp4;
  if (folds || widens || problem.k % device_code::block_k != 0) {
    code.kernels.push_back(single_kernel(device_code::preparation_program(), 0));
    code.kernels.back().kernel = folds    ? device_code::fold_tokens_kernel_name(device_code::token_format(problem.a))
                                 : widens ? device_code::widen_tokens_kernel_name()
                                          : device_code::pad_tokens_kernel_name();
  }
  return code;
}

PlannedCode fused_code(FusedChoice choice, const DualGemmProblem& problem, int multiprocessors) {
  namespace device_code = strategies::dual_gemm::fused;
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

PlannedCode dual_gemm_code(const DeviceSpec& device, const DualGemmProblem& problem, const DualGemmOptions& options) {
  const bool is_hopper = device.matrix_unit == MatrixUnit::wgmma;
  const bool is_fused = options.strategy != "two_pass";
  const bool packs = options.strategy.empty() || options.strategy == "packed" || !options.knobs.empty();
  if (problem.b == Format::nvfp4 && is_hopper && is_fused && packs) {
    return packed_code(problem, options, device.multiprocessors);
  }
  if (is_fused) {
    const bool is_asked_for = !options.strategy.empty() || !options.knobs.empty();
    if (auto choice = choose_fused(problem, {options.strategy, planner_words(options.knobs)}, device)) {
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
