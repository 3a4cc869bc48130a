#pragma once
/// The strategies for operands of 16 bits, which share one kernel and differ in the order of its products.
#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/strategy.hpp"

namespace thresher::strategies::dual_gemm::fused {

class FusedStrategy final : public Strategy<ProductProblem> {
 public:
  constexpr FusedStrategy(Order order, std::string_view summary) : order_(order), summary_(summary) {}

  [[nodiscard]] std::string_view name() const override;
  [[nodiscard]] std::string_view summary() const override { return summary_; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override;
  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override;
  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override;
  [[nodiscard]] WorkModel work(const ProductProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override;
  [[nodiscard]] std::optional<ProfiledCall> profiled(const ProductProblem& problem, const Knobs& knobs,
                                                     const DeviceSpec& device,
                                                     const ProfileRequest& request) const override;
  [[nodiscard]] std::vector<Sample<ProductProblem>> built_in() const override;
  [[nodiscard]] std::vector<ProductProblem> edges(const ProductProblem& problem, const Knobs& knobs,
                                                  const DeviceSpec& device) const override;
  [[nodiscard]] std::vector<Sample<ProductProblem>> samples() const override;

 private:
  [[nodiscard]] Config config(const ProductProblem& problem, const Knobs& knobs) const;
  [[nodiscard]] Config feasible_config(const ProductProblem& problem, const Knobs& knobs,
                                       const DeviceSpec& device) const;

  Order order_;
  std::string_view summary_;
};

}  // namespace thresher::strategies::dual_gemm::fused
