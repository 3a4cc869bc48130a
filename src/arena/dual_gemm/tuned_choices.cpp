// What tuning knows of the dual GEMM's choices.
#include "arena/operation/tuned_choices.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/options.hpp"
#include "arena/dual_gemm/task.hpp"
#include "ops/forecast.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

bool is_exact(const DualGemmOptions& options) {
  const std::string* const numerics = options.knobs.find("numerics");
  return numerics == nullptr || *numerics == name(Numerics::exact);
}

class DualGemmChoices final : public TunedChoices {
 public:
  [[nodiscard]] std::optional<LaunchedChoice> launched(const Problem& problem, const ContestantSpec& spec,
                                                       const DeviceSpec& device) const override {
    try {
      const DualGemmOptions options = plan_options(spec);
      if (!is_exact(options)) {
        return std::nullopt;
      }
      const strategies::PlannedCall call = ops::planned_call(dual_gemm(problem), options, device);
      return LaunchedChoice{call.strategy, call.knobs};
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  void remember(ops::Tuning& tuning, const std::string& device, const Problem& problem, const ContestantSpec& spec,
                double us, double default_us) const override {
    const DualGemmOptions options = plan_options(spec);
    tuning.set(device, dual_gemm(problem), {options.strategy, options.knobs.text(), us, default_us});
  }

  void forget(ops::Tuning& tuning, const std::string& device, const Problem& problem) const override {
    tuning.forget(device, dual_gemm(problem));
  }
};

}  // namespace

const TunedChoices* DualGemmOperation::tuned_choices() const {
  static const DualGemmChoices choices;
  return &choices;
}

}  // namespace thresher::arena
