#include "strategies/dual_gemm/two_pass/strategy.hpp"

#include <fmt/format.h>

#include "strategies/dual_gemm/two_pass/host/work.hpp"
#include "strategies/dual_gemm/two_pass/launch.hpp"
#include "strategies/refusal.hpp"

namespace thresher::strategies::dual_gemm {
namespace two_pass {
namespace {

constexpr std::int64_t max_blocks_of_a_grid = (std::int64_t{1} << 31) - 1;

const KnobTable<Config>& knob_table() {
  static const KnobTable<Config> table{
      "thresher::strategies::dual_gemm::two_pass::Config",
      {flag("widens_weights", &Config::widens_weights, "weights are copied for the library before each product")}};
  return table;
}

class TwoPassStrategy final : public Strategy<ProductProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "two_pass"; }
  [[nodiscard]] std::string_view summary() const override {
    return "two products of the vendor's library into float32, then the activation";
  }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cuda; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::fallback; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return knob_table().help(); }

  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec&) const override {
    if (bits(problem.a) == 8 || bits(problem.b) == 8) {
      return fmt::format("strategy two_pass takes fp16, bf16 and nvfp4, not {} with {}", thresher::name(problem.a),
                         thresher::name(problem.b));
    }
    return cannot_quantize_output(name(), problem.out);
  }

  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Knobs& knobs,
                                                            const DeviceSpec& device) const override {
    const Config config = knob_table().with(own(problem), knobs, name());
    if (auto sentence = unsupported_reason(problem, device)) {
      return {*sentence};
    }
    std::vector<std::string> found;
    if (must_widen(problem) && !config.widens_weights) {
      found.push_back(fmt::format("weights of {} with tokens of {} must be widened: leave widens_weights = false out",
                                  thresher::name(problem.b), thresher::name(problem.a)));
    }
    if (const std::int64_t blocks = max_blocks(problem); blocks > max_blocks_of_a_grid) {
      found.push_back(fmt::format("a matrix needs {} blocks of two_pass, a GPU takes {} at once: split the problem",
                                  blocks, max_blocks_of_a_grid));
    }
    return found;
  }

  /// Weights as they lie first: those that the library cannot read take the second.
  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem& problem, const Knobs& knobs,
                                              const DeviceSpec& device) const override {
    std::vector<Knobs> found;
    for (const bool widens : {false, true}) {
      const Knobs all = knob_table().knobs(knob_table().with({.widens_weights = widens}, knobs, name()));
      if (infeasible_reasons(problem, all, device).empty() && (found.empty() || found.back() != all)) {
        found.push_back(all);
      }
    }
    return found;
  }

  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs& knobs,
                                 const DeviceSpec& device) const override {
    refuse_infeasible(name(), knobs, infeasible_reasons(problem, knobs, device));
    const Config config = knob_table().with(own(problem), knobs, name());
    PlannedCall call = planned_call(problem, config);
    call.strategy = name();
    call.knobs = knob_table().knobs(config);
    return call;
  }

  [[nodiscard]] WorkModel work(const ProductProblem& problem, const Knobs&, const DeviceSpec&) const override {
    return two_pass::work(problem);
  }

  /// One program holds every kernel of it.
  [[nodiscard]] std::vector<Sample<ProductProblem>> built_in() const override {
    return {{DualGemmProblem{.m = 8, .n = 8, .k = 16, .a = Format::nvfp4, .b = Format::nvfp4}, {}}};
  }

 private:
  static bool must_widen(const ProductProblem& problem) { return problem.b != product_format(problem.a, problem.b); }
  static Config own(const ProductProblem& problem) { return {.widens_weights = must_widen(problem)}; }
};

}  // namespace
}  // namespace two_pass

const Strategy<ProductProblem>& two_pass_strategy() {
  static const two_pass::TwoPassStrategy strategy;
  return strategy;
}

}  // namespace thresher::strategies::dual_gemm
