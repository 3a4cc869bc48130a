#pragma once
/// The strategies for operands of 16 bits, which share one kernel and differ in the order of its products.
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/strategy.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm::fused {

class FusedStrategy final : public Strategy<DualGemmProblem> {
 public:
  constexpr FusedStrategy(Order order, std::string_view summary) : order_(order), summary_(summary) {}

  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::string_view summary() const override { return summary_; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const DualGemmProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override;
  [[nodiscard]] std::optional<std::string> unsupported_reason(const DualGemmProblem& problem,
                                                              const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const DualGemmProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override;
  [[nodiscard]] PlannedCall plan(const DualGemmProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override;
  [[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override;
  [[nodiscard]] std::optional<ProfiledCall> profiled(const DualGemmProblem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override;
  [[nodiscard]] std::vector<Sample<DualGemmProblem>> built_in() const override;
  [[nodiscard]] std::vector<DualGemmProblem> edges(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override;

 private:
  [[nodiscard]] Config config(const DualGemmProblem& problem, const Knobs& knobs) const;
  [[nodiscard]] Config feasible_config(const DualGemmProblem& problem, const Knobs& knobs,
                                       const DeviceSpec& device) const;

  Order order_;
  std::string_view summary_;
};

}  // namespace thresher::strategies::dual_gemm::fused
