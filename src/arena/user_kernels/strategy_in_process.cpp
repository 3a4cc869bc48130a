// A strategy of Thresher's own, in a process of its own like its opponent.
#include "arena/operation/operation.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "arena/user_kernels/process/process_rig.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// These have no claimed limit, and packing weights takes time.
constexpr double limit_s = 600;

class StrategyInProcess final : public Contestant {
 public:
  StrategyInProcess(std::unique_ptr<Contestant> strategy, std::vector<std::string> server)
      : Contestant(strategy->spec()), strategy_(std::move(strategy)), server_(std::move(server)) {}

  [[nodiscard]] Numerics numerics() const override { return strategy_->numerics(); }
  [[nodiscard]] std::string unsupported_reason(const Problem& problem) const override {
    return strategy_->unsupported_reason(problem);
  }
  [[nodiscard]] std::string cannot_run() const override { return strategy_->cannot_run(); }
  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    return strategy_->feasible(problem, memory);
  }
  [[nodiscard]] Answer compile(const Problem& problem) const override { return strategy_->compile(problem); }
  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    return strategy_->machine_code(problem);
  }
  [[nodiscard]] Emulation emulation(const Problem& problem) const override { return strategy_->emulation(problem); }

  [[nodiscard]] Rig& rig(Rig& own) const override {
    if (!rig_) {
      ProcessOptions options{server_, "the process of " + name(), limit_s, limit_s};
      options.match_time = match_time();
      rig_ = std::make_unique<ProcessRig>(own, std::move(options), Writer(Ask::load_strategy).put(name()));
    }
    return *rig_;
  }
  void start_anew() const override { rig_.reset(); }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory&,
                                                const std::vector<DeviceSet>& sets) const override {
    return rig_->bind(Calls(problem, sets));
  }

 private:
  std::unique_ptr<Contestant> strategy_;
  std::vector<std::string> server_;
  mutable std::unique_ptr<ProcessRig> rig_;
};

}  // namespace

std::unique_ptr<Contestant> baseline_of(const Kernel& kernel, const ContestantSpec& spec, const Device& device,
                                        const Registry& registry, const std::vector<std::string>& server) {
  std::unique_ptr<Contestant> strategy = registry.create(spec);
  const bool shares_its_clock = kernel.language != Language::cuda && device.kind() == DeviceKind::cpu;
  return shares_its_clock ? std::make_unique<StrategyInProcess>(std::move(strategy), server) : std::move(strategy);
}

void check_server(const std::vector<std::string>& server) {
  const KernelProcess answers({server, "the process for a user kernel"}, Writer(Ask::hello));
}

}  // namespace thresher::arena::user_kernels
