#include "reference/dual_gemm.hpp"
#include "strategies/gemm/tensors.hpp"
#include "support/toy_strategies.hpp"

namespace thresher::test {
namespace {

using namespace strategies;
using namespace strategies::gemm;

class Toy final : public Strategy<ProductProblem> {
 public:
  [[nodiscard]] std::string_view name() const override { return "toy"; }
  [[nodiscard]] std::string_view summary() const override { return "the definition"; }
  [[nodiscard]] DeviceKind device_kind() const override { return DeviceKind::cpu; }
  [[nodiscard]] Role role(const ProductProblem&) const override { return Role::by_name; }
  [[nodiscard]] std::vector<KnobHelp> knobs() const override { return {}; }
  [[nodiscard]] std::optional<std::string> unsupported_reason(const ProductProblem& problem,
                                                              const DeviceSpec&) const override {
    return problem.out == Format::fp32 ? std::nullopt : std::optional<std::string>("strategy toy writes fp32");
  }
  [[nodiscard]] std::vector<std::string> infeasible_reasons(const ProductProblem& problem, const Knobs&,
                                                            const DeviceSpec& device) const override {
    const auto sentence = unsupported_reason(problem, device);
    return sentence ? std::vector{*sentence} : std::vector<std::string>{};
  }
  [[nodiscard]] std::vector<Knobs> candidates(const ProductProblem& problem, const Knobs&,
                                              const DeviceSpec& device) const override {
    return unsupported_reason(problem, device) ? std::vector<Knobs>{} : std::vector<Knobs>(1);
  }
  [[nodiscard]] PlannedCall plan(const ProductProblem& problem, const Knobs&, const DeviceSpec&) const override {
    PlannedCall call;
    call.strategy = name();
    call.steps.emplace_back(
        HostCall{"define", [problem = problem.dual_gemm()](const CallTensors& tensors) { define(problem, tensors); }});
    call.data_alignment = 4;
    return call;
  }

 private:
  static void define(DualGemmProblem problem, const CallTensors& tensors) {
    problem.m = tokens_of(tensors).shape[0];
    const Tensor& c = output_of(tensors);
    const std::vector<double> values =
        reference::dual_gemm(problem, tokens_of(tensors), gate_of(tensors), up_of(tensors));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / problem.n;
      const auto column = static_cast<std::int64_t>(i) % problem.n;
      static_cast<float*>(c.data)[row * c.strides[0] + column] = static_cast<float>(values[i]);
    }
  }
};

}  // namespace

const Strategy<ProductProblem>& toy_cpu_strategy() {
  static const Toy strategy;
  return strategy;
}

}  // namespace thresher::test
