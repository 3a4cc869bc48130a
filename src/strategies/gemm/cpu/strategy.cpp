#include "strategies/gemm/registry.hpp"

#include <memory>

#include "cpu/dual_gemm.hpp"
#include "cpu/grouped_gemm.hpp"
#include "strategies/cpu_family.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::gemm {
namespace {

/// Elements need no more alignment than their type has.
std::size_t output_alignment(const ProductProblem& problem) { return problem.out == Format::fp32 ? 4 : 2; }

PlannedCall dual_gemm_call(std::string_view kernel_name, const ProductProblem& problem, int threads) {
  const std::shared_ptr<const cpu::DualGemmKernel> kernel =
      cpu::plan_dual_gemm(kernel_name, problem.dual_gemm(), threads);
  PlannedCall call;
  add_piece(call, "the kernel's workspace", kernel->workspace_bytes());
  call.steps.emplace_back(HostCall{"multiply", [kernel](const CallTensors& tensors) {
                                     kernel->run(tokens_of(tensors), gate_of(tensors), up_of(tensors),
                                                 output_of(tensors), tensors.workspace);
                                   }});
  call.data_alignment = output_alignment(problem);
  return call;
}

struct Interleaved : CpuFamily<ProductProblem> {
  static constexpr std::string_view name = "interleaved";
  static constexpr std::string_view summary =
      "block by block of the weights, gate and up multiplied while they lie in cache";
  static PlannedCall plan(const ProductProblem& problem, const CpuConfig& config, const DeviceSpec&) {
    return dual_gemm_call(name, problem, config.threads);
  }
};

struct CpuTwoPass : CpuFamily<ProductProblem> {
  static constexpr Overrides overrides{.device_kind = true, .role = true};
  static constexpr std::string_view name = "two_pass";
  static constexpr std::string_view summary = "everything widened, two whole products, then the activation";
  static Role role(const ProductProblem&) { return Role::by_name; }
  static PlannedCall plan(const ProductProblem& problem, const CpuConfig& config, const DeviceSpec&) {
    return dual_gemm_call(name, problem, config.threads);
  }
};

struct ByExpert : CpuFamily<ProductProblem> {
  static constexpr std::string_view name = "by_expert";
  static constexpr std::string_view summary =
      "an expert a thread, block by block of its weights, gate and up multiplied while they lie in cache";

  static PlannedCall plan(const ProductProblem& problem, const CpuConfig& config, const DeviceSpec&) {
    const auto kernel = std::make_shared<const cpu::GroupedGemmKernel>(problem.grouped(), config.threads);
    PlannedCall call;
    add_piece(call, "status", status_bytes(1));
    const std::size_t piece = add_piece(call, "the kernel's workspace", kernel->workspace_bytes());
    const std::size_t offset = call.workspace[piece].offset;
    call.steps.emplace_back(HostCall{"multiply", [=](const CallTensors& tensors) {
                                       const GroupedStatus status =
                                           kernel->run(weights_of(tensors), tensors_of(problem, tensors),
                                                       static_cast<std::byte*>(tensors.workspace) + offset);
                                       auto* const words = static_cast<std::uint32_t*>(tensors.workspace);
                                       words[0] = 1;
                                       words[1] = status.flags;
                                     }});
    call.data_alignment = output_alignment(problem);
    return call;
  }
};

}  // namespace

const Strategy<ProductProblem>& cpu_interleaved_strategy() { return strategy_of<Interleaved>(); }
const Strategy<ProductProblem>& cpu_two_pass_strategy() { return strategy_of<CpuTwoPass>(); }
const Strategy<ProductProblem>& cpu_by_expert_strategy() { return strategy_of<ByExpert>(); }

}  // namespace thresher::strategies::gemm
