#include "reference/dual_gemm.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/kernel_strategy.hpp"
#include "support/toy_strategies.hpp"

namespace thresher::test {
namespace {

using namespace strategies;
using namespace strategies::gemm;

struct NoKnobs {};

struct Toy : FamilyDefaults<ProductProblem, NoKnobs> {
  static constexpr Overrides overrides{.device_kind = true, .role = true};
  static constexpr DeviceKind device_kind = DeviceKind::cpu;
  static constexpr std::string_view name = "toy";
  static constexpr std::string_view summary = "the definition";
  static Role role(const ProductProblem&) { return Role::by_name; }

  static const KnobTable<NoKnobs>& knob_table() {
    static const KnobTable<NoKnobs> table{"", {}};
    return table;
  }
  static std::optional<std::string> unsupported_reason(const ProductProblem& problem, const DeviceSpec&) {
    return problem.out == Format::fp32 ? std::nullopt : std::optional<std::string>("strategy toy writes fp32");
  }
  static std::vector<std::string> infeasible_reasons(const ProductProblem&, const NoKnobs&, const DeviceSpec&) {
    return {};
  }
  static PlannedCall plan(const ProductProblem& problem, const NoKnobs&, const DeviceSpec&) {
    PlannedCall call;
    call.steps.emplace_back(
        HostCall{"define", [problem = problem.dual_gemm()](const CallTensors& tensors) { define(problem, tensors); }});
    call.data_alignment = 4;
    return call;
  }

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
  static const KernelStrategy<Toy> strategy;
  return strategy;
}

}  // namespace thresher::test
