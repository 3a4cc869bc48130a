#include "strategies/dual_gemm/one_group/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "strategies/dual_gemm/formats.hpp"
#include "strategies/grouped_gemm/columns/strategy.hpp"
#include "strategies/grouped_gemm/rows/strategy.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace {

/// For 16 bits that are written as they are the dual GEMM has kernels of its own.
bool takes(const ProductProblem& problem) { return is_fp8(problem.a) || format_traits(problem.out).is_requantised(); }

/// Whether it has all that a dual GEMM has, and nothing else, but for its offsets.
bool is_dual_gemm(const ProductProblem& problem) {
  return problem.activation && !problem.bias && !problem.row_weights && problem.layout == ProductRows::contiguous;
}

ProductProblem as_dense(ProductProblem problem) {
  problem.layout = ProductRows::dense;
  problem.experts = 1;
  return problem;
}

/// A grouped strategy of plain operands.
class OneGroup final : public Strategy<ProductProblem> {
 public:
  explicit OneGroup(const Strategy<ProductProblem>& of) : of_(of) {}

  [[nodiscard]] std::string_view name() const override { return of_.name(); }
  [[nodiscard]] std::string_view summary() const override { return of_.summary(); }
  [[nodiscard]] DeviceKind device_kind() const override { return of_.device_kind(); }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::competes; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return of_.knobs(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec& device) const override {
    if (takes(problem) && !of_.unsupported_reason(problem, device)) {
      return std::nullopt;
    }
    return fmt::format(
        "strategy {} takes FP8 with FP8, and 16 bits with the same where outputs are requantised, on a "
        "Hopper GPU, not {} with {} to {} on {}",
        name(), thresher::name(problem.a), thresher::name(problem.b), thresher::name(problem.out), device.name);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    std::vector<std::string> found = of_.infeasible_reasons(problem, knobs, device);
    if (auto sentence = unsupported_reason(problem, device)) {
      return {*sentence};
    }
    return found;
  }

  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    std::vector<Knobs> found = of_.candidates(problem, knobs, device);
    if (unsupported_reason(problem, device)) {
      found.clear();
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    return of_.plan(problem, knobs, device);
  }

  [[nodiscard]] WorkModel work(const ProductProblem& problem, const Knobs& knobs,
                               const DeviceSpec& device) const override {
    return of_.work(problem, knobs, device);
  }

  [[nodiscard]] std::vector<ProductProblem> edges(const ProductProblem& problem, const Knobs& knobs,
                                                  const DeviceSpec& device) const override {
    return of_.edges(problem, knobs, device);
  }

  [[nodiscard]] std::vector<Sample<ProductProblem>> samples() const override {
    std::vector<Sample<ProductProblem>> found;
    for (const Sample<ProductProblem>& sample : of_.samples()) {
      if (is_dual_gemm(sample.problem) && takes(sample.problem)) {
        found.push_back({as_dense(sample.problem), sample.knobs});
      }
    }
    return found;
  }

 private:
  const Strategy<ProductProblem>& of_;
};

}  // namespace

const Strategy<ProductProblem>& columns_strategy() {
  static const OneGroup strategy(grouped_gemm::columns_strategy());
  return strategy;
}

const Strategy<ProductProblem>& rows_strategy() {
  static const OneGroup strategy(grouped_gemm::rows_strategy());
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
