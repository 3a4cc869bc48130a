#include "arena/operation/planned_code.hpp"

#include <algorithm>

#include "ops/cuda_programs.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena {
namespace {

void add(MachineCode& code, const strategies::KernelLaunch& launch, const std::string& arch) {
  const ops::CompiledProgram compiled = ops::compile_program(launch.program, arch);
  const auto& kernels = compiled.cubin.kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const runtime::CompiledKernel& each) {
    return each.expression == launch.expression;
  });
  if (found == kernels.end()) {
    code.not_judged = "the compiled program " + launch.program.title + " has no kernel " + launch.expression;
    return;
  }
  code.kernels.push_back({launch.program.title, found->lowered_name, compiled.cubin.image, compiled.cubin.toolchain,
                          found->resources, static_cast<int>(launch.shared_bytes), launch.expected});
}

void add(MachineCode&, const strategies::LibraryProduct&, const std::string&) {}

void add(MachineCode& code, const strategies::HostCall&, const std::string&) {
  code.not_judged = "the audit reads GPU machine code, and this contestant has none of its own";
}

}  // namespace

MachineCode machine_code_of(const strategies::PlannedCall& call, const std::string& arch) {
  if (std::any_of(call.steps.begin(), call.steps.end(), [](const strategies::Step& step) {
        return std::holds_alternative<strategies::LibraryProduct>(step);
      })) {
    return {{}, "its products are cuBLASLt's, whose machine code lies in that library"};
  }
  MachineCode code;
  std::vector<strategies::Step> steps = call.steps;
  std::rotate(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(call.preparation_steps), steps.end());
  for (const strategies::Step& step : steps) {
    std::visit([&](const auto& one) { add(code, one, arch); }, step);
  }
  return code;
}

}  // namespace thresher::arena
