#include "strategies/dual_gemm/cpu/strategy.hpp"

#include <fmt/format.h>

#include "cpu/dual_gemm.hpp"
#include "strategies/dual_gemm/cpu/config.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace host {
namespace {

constexpr int max_threads = 1024;

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::host::Config",
      {range("threads", &Config::threads, 0, max_threads, 1, "threads to use; 0: all")}};
  return table;
}

class CpuStrategy final : public Strategy<ProductProblem> {
 public:
  CpuStrategy(std::string_view name, std::string_view summary, Role role)
      : name_(name), summary_(summary), role_(role) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view summary() const override { return summary_; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cpu; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return role_; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem&, const DeviceSpec&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem&, const Knobs& knobs,
                                                            const DeviceSpec&) const override {
    (void)config(knobs);
    return {};
  }
  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem&, const Knobs& knobs,
                                              const DeviceSpec&) const override {
    return {knob_table().knobs(config(knobs))};
  }

  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    const Config wanted = config(knobs);
    const std::shared_ptr<const cpu::DualGemmKernel> kernel =
        cpu::plan_dual_gemm(name_, problem.dual_gemm(), wanted.threads);
    PlannedCall call;
    call.strategy = name_;
    call.knobs = knob_table().knobs(wanted);
    add_piece(call, "the kernel's workspace", kernel->workspace_bytes());
    call.steps.emplace_back(HostCall{"multiply", [kernel](const CallTensors& tensors) {
                                       kernel->run(tokens_of(tensors), gate_of(tensors), up_of(tensors),
                                                   output_of(tensors), tensors.workspace);
                                     }});
    // Elements lie where their type may lie.
    call.data_alignment = problem.out == Format::fp32 ? 4 : 2;
    return call;
  }

 private:
  [[nodiscard]] Config config(const Knobs& knobs) const { return knob_table().with({}, knobs, name_); }

  std::string_view name_;
  std::string_view summary_;
  Role role_;
};

}  // namespace
}  // namespace host

const Strategy<ProductProblem>& cpu_interleaved_strategy() {
  static const host::CpuStrategy strategy(
      "interleaved", "block by block of the weights, gate and up multiplied while they lie in cache", Role::competes);
  return strategy;
}

const Strategy<ProductProblem>& cpu_two_pass_strategy() {
  static const host::CpuStrategy strategy("two_pass", "everything widened, two whole products, then the activation",
                                          Role::by_name);
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
