#include "strategies/dual_gemm/one_group/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/host/one_group.hpp"
#include "strategies/grouped_gemm/columns/strategy.hpp"
#include "strategies/grouped_gemm/host/dense.hpp"
#include "strategies/grouped_gemm/rows/strategy.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

/// For 16 bits that are written as they are the dual GEMM has kernels of its own.
bool takes(const DualGemmProblem& problem) { return is_fp8(problem.a) || format_traits(problem.out).is_requantised(); }

/// Has all that a dual GEMM has, and nothing else.
bool is_dense(const GroupedProblem& problem) {
  return problem.activation && !problem.bias && !problem.row_weights && problem.layout == RowLayout::packed;
}

/// A grouped strategy of plain operands.
class OneGroup final : public Strategy<DualGemmProblem> {
 public:
  explicit OneGroup(const Strategy<GroupedProblem>& of) : of_(of) {}

  [[nodiscard]] std::string_view name() const override { return of_.name(); }
  [[nodiscard]] std::string_view summary() const override { return of_.summary(); }
  [[nodiscard]] DeviceKind device_kind() const override { return of_.device_kind(); }
  [[nodiscard]] Role role(const DualGemmProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return of_.knobs(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const DualGemmProblem& problem,
                                                              const DeviceSpec& device) const override {
    if (takes(problem) && !of_.unsupported_reason(one_group(problem), device)) {
      return std::nullopt;
    }
    return fmt::format(
        "strategy {} takes FP8 with FP8, and 16 bits with the same where outputs are requantised, on a "
        "Hopper GPU, not {} with {} to {} on {}",
        name(), thresher::name(problem.a), thresher::name(problem.b), thresher::name(problem.out), device.name);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const DualGemmProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    std::vector<std::string> found = of_.infeasible_reasons(one_group(problem), knobs, device);
    if (auto sentence = unsupported_reason(problem, device)) {
      return {*sentence};
    }
    return found;
  }

  [[nodiscard]] std::vector<Knobs> candidates(const DualGemmProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    std::vector<Knobs> found = of_.candidates(one_group(problem), knobs, device);
    if (unsupported_reason(problem, device)) {
      found.clear();
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const DualGemmProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    PlannedCall call = grouped_gemm::without_offsets(of_.plan(one_group(problem), knobs, device));
    for (Step& step : call.steps) {
      take_own_tensors(std::get<KernelLaunch>(step));
    }
    for (Alignment& alignment : call.alignments) {
      alignment.tensor = own_place(alignment.tensor);
    }
    return call;
  }

  [[nodiscard]] WorkModel work(const DualGemmProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override {
    return of_.work(one_group(problem), knobs, device);
  }

  [[nodiscard]] std::vector<DualGemmProblem> edges(const DualGemmProblem& problem, const Knobs& knobs,
                                                   const DeviceSpec& device) const override {
    const std::vector<GroupedProblem> of_groups = of_.edges(one_group(problem), knobs, device);
    std::vector<DualGemmProblem> found;
    std::transform(of_groups.begin(), of_groups.end(), std::back_inserter(found), without_groups);
    return found;
  }

  [[nodiscard]] std::vector<Sample<DualGemmProblem>> samples() const override {
    std::vector<Sample<DualGemmProblem>> found;
    for (const Sample<GroupedProblem>& sample : of_.samples()) {
      if (is_dense(sample.problem) && takes(without_groups(sample.problem))) {
        found.push_back({without_groups(sample.problem), sample.knobs});
      }
    }
    return found;
  }

 private:
  const Strategy<GroupedProblem>& of_;
};

}  // namespace

const Strategy<DualGemmProblem>& columns_strategy() {
  static const OneGroup strategy(grouped_gemm::columns_strategy());
  return strategy;
}

const Strategy<DualGemmProblem>& rows_strategy() {
  static const OneGroup strategy(grouped_gemm::rows_strategy());
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
