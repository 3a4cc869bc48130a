// The planner is fitted to dual GEMMs, and tuning knows their choices.
#include <tuple>

#include "arena/gemm/options.hpp"
#include "arena/gemm/parts.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/tuned_choices.hpp"
#include "ops/forecast.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using Cases = std::vector<CalibrationCase>;

void add(Cases& all, const DualGemmProblem& problem, const char* strategy,
         std::map<std::string, std::string> knobs = {}) {
  all.push_back({problem_of(problem), {std::string(dual_gemm_operation().name()), strategy, std::move(knobs)}});
}

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

std::vector<CalibrationCase> dual_gemm_calibration_cases() {
  Cases all;
  const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, Format a, Format b, Format out) {
    return DualGemmProblem{.m = m, .n = n, .k = k, .a = a, .b = b, .out = out};
  };
  const std::map<std::string, std::string> fast{{"numerics", "fast"}};
  for (const auto& [m, n, k] : {std::tuple{128, 5120, 5120}, {320, 6144, 4096}, {1024, 5120, 5120}}) {
    const DualGemmProblem plain = of(m, n, k, Format::bf16, Format::bf16, Format::bf16);
    for (const char* strategy : {"two_pass", "interleaved", "sequential", "pingpong"}) {
      add(all, plain, strategy);
    }
    const DualGemmProblem packed = of(m, n, k, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
    add(all, packed, "packed",
        {{"math_warpgroups", "2"},
         {"block_tokens", "128"},
         {"blocks_per_slot", "2"},
         {"stages", "3"},
         {"split_k", "1"}});
  }
  for (const std::int64_t m : {2, 24, 48}) {
    const DualGemmProblem packed = of(m, 11008, 4096, Format::fp16, Format::nvfp4, Format::fp16);
    add(all, packed, "two_pass");
    add(all, packed, "packed");
    add(all, packed, "packed", fast);
  }
  return all;
}

const TunedChoices* dual_gemm_tuned_choices() {
  static const DualGemmChoices choices;
  return &choices;
}

}  // namespace thresher::arena
