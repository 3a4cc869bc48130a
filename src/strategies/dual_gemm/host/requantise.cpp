#include "strategies/dual_gemm/host/requantise.hpp"

#include <utility>
#include <variant>

#include "strategies/dual_gemm/host/one_group.hpp"
#include "strategies/dual_gemm/tensors.hpp"
#include "strategies/grouped_gemm/host/requantise.hpp"

namespace thresher::strategies::dual_gemm {

DualGemmProblem unrounded(DualGemmProblem problem) {
  problem.out = Format::fp32;
  return problem;
}

PlannedCall with_output_quantization(PlannedCall call, const DualGemmProblem& problem) {
  call = grouped_gemm::with_output_quantization(std::move(call), one_group(problem), output_index);
  auto& launch = std::get<KernelLaunch>(call.steps.back());
  // Without bounds every row is owned.
  std::erase_if(launch.accesses, [](const Access& access) {
    return access.memory == Access::Memory::tensor && access.index == grouped_gemm::groups_index;
  });
  take_own_tensors(launch);
  launch.dependent = true;  // it waits itself, for products that are none of dependent launches too
  return call;
}

WorkModel with_output_quantization(WorkModel work, const DualGemmProblem& problem) {
  return grouped_gemm::with_output_quantization(std::move(work), one_group(problem));
}

}  // namespace thresher::strategies::dual_gemm
