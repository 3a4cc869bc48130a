#include "strategies/attention/blockwise/strategy.hpp"

#include "cpu/attention.hpp"
#include "strategies/attention/tensors.hpp"

namespace thresher::strategies::attention {
namespace {

struct Config {
  int threads = 0;
};

constexpr int max_threads = 1024;

class Blockwise final : public Strategy<AttentionProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "blockwise"; }
  [[nodiscard]] std::string_view summary() const override {
    return "blocks of queries and keys; the matrix of logits never exists as a whole";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cpu; }
  [[nodiscard]] Role role(const AttentionProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return table_.help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const AttentionProblem&,
                                                              const DeviceSpec&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const AttentionProblem&, const Knobs& knobs,
                                                            const DeviceSpec&) const override {
    (void)table_.with({}, knobs, name());
    return {};
  }
  [[nodiscard]] std::vector<Knobs> candidates(const AttentionProblem&, const Knobs& knobs,
                                              const DeviceSpec&) const override {
    return {table_.knobs(table_.with({}, knobs, name()))};
  }
  [[nodiscard]] PlannedCall plan(const AttentionProblem& problem, const Knobs& knobs,
                                 const DeviceSpec&) const override {
    const Config config = table_.with({}, knobs, name());
    PlannedCall call;
    call.strategy = name();
    call.knobs = table_.knobs(config);
    call.steps.emplace_back(HostCall{"attend", [problem, threads = config.threads](const CallTensors& tensors) {
                                       cpu::attention(problem, named(tensors), threads);
                                     }});
    return call;
  }

 private:
  KnobTable<Config> table_{"", {range("threads", &Config::threads, 0, max_threads, 1, "threads to use; 0: all")}};
};

}  // namespace

const Strategy<AttentionProblem>& blockwise_strategy() {
  static const Blockwise strategy;
  return strategy;
}

}  // namespace thresher::strategies::attention
