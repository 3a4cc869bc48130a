#include "arena/dual_gemm/machine_code.hpp"

#include "arena/operation/planned_code.hpp"
#include "ops/forecast.hpp"

namespace thresher::arena {

MachineCode dual_gemm_machine_code(const DeviceSpec& device, const std::string& arch, const DualGemmProblem& problem,
                                   const DualGemmOptions& options) {
  return machine_code_of(ops::planned_call(problem, options, device), arch);
}

}  // namespace thresher::arena
