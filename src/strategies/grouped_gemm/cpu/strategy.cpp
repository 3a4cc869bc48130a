#include "strategies/grouped_gemm/cpu/strategy.hpp"

#include "cpu/grouped_gemm.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::grouped_gemm {
namespace {

struct Config {
  int threads = 0;
};

constexpr int max_threads = 1024;

class ByExpert final : public Strategy<ProductProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "by_expert"; }
  [[nodiscard]] std::string_view summary() const override {
    return "an expert a thread, block by block of its weights, gate and up multiplied while they lie in cache";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cpu; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return table_.help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem&, const DeviceSpec&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem&, const Knobs& knobs,
                                                            const DeviceSpec&) const override {
    (void)table_.with({}, knobs, name());
    return {};
  }
  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem&, const Knobs& knobs,
                                              const DeviceSpec&) const override {
    return {table_.knobs(table_.with({}, knobs, name()))};
  }
  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs, const DeviceSpec&) const override {
    const Config config = table_.with({}, knobs, name());
    const auto kernel = std::make_shared<const cpu::GroupedGemmKernel>(problem.grouped(), config.threads);
    PlannedCall call;
    call.strategy = name();
    call.knobs = table_.knobs(config);
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
    // Elements lie where their type may lie.
    call.data_alignment = problem.out == Format::fp32 ? 4 : 2;
    return call;
  }

 private:
  KnobTable<Config> table_{"", {range("threads", &Config::threads, 0, max_threads, 1, "threads to use; 0: all")}};
};

}  // namespace

const Strategy<ProductProblem>& cpu_by_expert_strategy() {
  static const ByExpert strategy;
  return strategy;
}

}  // namespace thresher::strategies::grouped_gemm
