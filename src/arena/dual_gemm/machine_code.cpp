#include "arena/dual_gemm/machine_code.hpp"

#include <algorithm>

#include "arena/audit/expectations.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/dual_gemm_code.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::arena {
namespace {

/// One slot of the ring: 64 rows of weights (32 gate, 32 up) a warpgroup, 32 bytes along K an instruction, all tokens
/// of the tile at once. Weights come in bulk, tokens through a tensor map.
AuditExpectations expected_of(const strategies::dual_gemm::packed::Config& config) {
  const bool is_fast = config.path == strategies::dual_gemm::packed::Path::fast;
  const int mma_k = is_fast ? 32 : 16;
  AuditExpectations out;
  out.matrix_kind = is_fast ? "QGMMA" : "HGMMA";
  out.min_matrix_instructions = config.blocks_per_slot * static_cast<int>(weight_block_k(config)) / mma_k;
  out.min_tma_loads = 2;
  return out;
}

AuditExpectations expected_of(const ops::PlannedKernel& kernel, const DualGemmProblem& problem,
                              const DeviceSpec& device) {
  if (kernel.fused) {
    return arena::expected_of(problem, *kernel.fused, device);
  }
  if (kernel.packed) {
    return expected_of(*kernel.packed);
  }
  AuditExpectations out = expected_of_any_kernel();
  out.uses_shared_memory = false;  // it only converts
  return out;
}

}  // namespace

MachineCode dual_gemm_machine_code(const DeviceSpec& device, const std::string& arch, const DualGemmProblem& problem,
                                   const DualGemmOptions& options) {
  const ops::PlannedCode planned = ops::dual_gemm_code(device, problem, options);
  MachineCode code{{}, planned.foreign};
  for (const ops::PlannedKernel& kernel : planned.kernels) {
    const ops::CompiledProgram compiled = ops::compile_program(kernel.program, arch);
    const auto found =
        std::find_if(compiled.cubin.kernels.begin(), compiled.cubin.kernels.end(),
                     [&](const runtime::CompiledKernel& each) { return each.expression == kernel.kernel; });
    if (found == compiled.cubin.kernels.end()) {
      code.not_judged = "the compiled program " + kernel.program.title + " has no kernel " + kernel.kernel;
      continue;
    }
    code.kernels.push_back({kernel.program.title, found->lowered_name, compiled.cubin.image, compiled.cubin.toolchain,
                            found->resources, kernel.dynamic_shared_bytes, expected_of(kernel, problem, device)});
  }
  return code;
}

}  // namespace thresher::arena
