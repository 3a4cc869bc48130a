#include "cpu/attention.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "strategies/kernel_strategy.hpp"

namespace thresher::strategies::attention {
namespace {

struct CpuThreads {
  int threads = 0;
};

struct Blockwise : FamilyDefaults<AttentionProblem, CpuThreads> {
  static constexpr Overrides overrides{.device_kind = true};
  static constexpr DeviceKind device_kind = DeviceKind::cpu;
  static constexpr std::string_view name = "blockwise";
  static constexpr std::string_view summary =
      "blocks of queries and keys; the matrix of logits never exists as a whole";

  static const KnobTable<CpuThreads>& knob_table() {
    constexpr int max_threads = 1024;
    static const KnobTable<CpuThreads> table{
        "", {range("threads", &CpuThreads::threads, 0, max_threads, 1, "threads to use; 0: all")}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const AttentionProblem&, const DeviceSpec&) {
    return std::nullopt;
  }
  static std::vector<std::string> infeasible_reasons(const AttentionProblem&, const CpuThreads&, const DeviceSpec&) {
    return {};
  }
  static PlannedCall plan(const AttentionProblem& problem, const CpuThreads& config, const DeviceSpec&) {
    PlannedCall call;
    call.steps.emplace_back(HostCall{"attend", [problem, threads = config.threads](const CallTensors& tensors) {
                                       cpu::attention(problem, named(tensors), threads);
                                     }});
    return call;
  }
};

}  // namespace

const Strategy<AttentionProblem>& blockwise_strategy() {
  static const KernelStrategy<Blockwise> strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
