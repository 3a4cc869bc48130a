#pragma once
/// Attention in the arena: its data (operation.cpp), its suites (suite.cpp), its options on a
/// command line (command_line.cpp), its strategies (contestants.cpp), their kernels in the emulator (emulated.cpp).
#include "arena/operation/operation.hpp"

namespace thresher::arena {

class AttentionOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  [[nodiscard]] std::string label(const Problem& problem) const override;
  void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const override;
  [[nodiscard]] Cost cost(const Problem& problem) const override;
  [[nodiscard]] double working_bytes(const Problem& problem) const override;
  [[nodiscard]] Problem example() const override;
  [[nodiscard]] std::vector<ProblemOption> options() const override;

  [[nodiscard]] bool offers(const Problem& problem, Distribution distribution) const override;
  [[nodiscard]] std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const override;
  [[nodiscard]] std::vector<HostTensor> outputs(const Problem& problem) const override;
  [[nodiscard]] std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                             std::uint64_t seed) const override;
  [[nodiscard]] std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const override;
  [[nodiscard]] std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                  std::size_t index) const override;
  [[nodiscard]] std::optional<std::vector<HostTensor>> rearranged(const Problem& problem, Distribution distribution,
                                                                  std::uint64_t change,
                                                                  std::uint64_t seed) const override;
  [[nodiscard]] bool uses_every_element(const Problem& problem) const override;
  [[nodiscard]] std::optional<Problem> neighbour(const Problem& problem) const override;
  [[nodiscard]] std::optional<Problem> smaller(const Problem& problem) const override;

  [[nodiscard]] std::vector<std::string> contestants(DeviceKind kind) const override;
  void check(const ContestantSpec& spec, const Device& device) const override;
  [[nodiscard]] std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                     const Device& device) const override;
  [[nodiscard]] PlanRequest plan_request(const ContestantSpec& spec) const override;
  [[nodiscard]] MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                         const DeviceSpec& device) const override;
  [[nodiscard]] const EmulatedOperation* emulated() const override;
  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override;
  [[nodiscard]] PlannerResult outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                      const planner::Calibration& calibration) const override;
  [[nodiscard]] std::vector<CalibrationCase> calibration_cases() const override;
  [[nodiscard]] bool is_timed_warm() const override { return true; }
};

}  // namespace thresher::arena
