#include "arena/dual_gemm/machine_code.hpp"

#include <algorithm>

#include "ops/cuda_programs.hpp"
#include "ops/forecast.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena {
namespace {

/// The kernel that outputs without gaps take: they are what a tournament gives it.
void add_kernel(MachineCode& code, const strategies::KernelLaunch& launch, const std::string& arch) {
  const ops::CompiledProgram compiled = ops::compile_program(launch.program, arch);
  const auto found =
      std::find_if(compiled.cubin.kernels.begin(), compiled.cubin.kernels.end(),
                   [&](const runtime::CompiledKernel& each) { return each.expression == launch.expression; });
  if (found == compiled.cubin.kernels.end()) {
    code.not_judged = "the compiled program " + launch.program.title + " has no kernel " + launch.expression;
    return;
  }
  code.kernels.push_back({launch.program.title, found->lowered_name, compiled.cubin.image, compiled.cubin.toolchain,
                          found->resources, static_cast<int>(launch.shared_bytes), launch.expected});
}

}  // namespace

MachineCode dual_gemm_machine_code(const DeviceSpec& device, const std::string& arch, const DualGemmProblem& problem,
                                   const DualGemmOptions& options) {
  const strategies::PlannedCall call = ops::planned_call(problem, options, device);
  MachineCode code;
  for (const strategies::Step& step : call.steps) {
    if (std::holds_alternative<strategies::LibraryProduct>(step)) {
      return {{}, "its products are cuBLASLt's, whose machine code lies in that library"};
    }
  }
  for (auto step = call.steps.rbegin(); step != call.steps.rend(); ++step) {  // the one that multiplies first
    add_kernel(code, std::get<strategies::KernelLaunch>(*step), arch);
  }
  return code;
}

}  // namespace thresher::arena
