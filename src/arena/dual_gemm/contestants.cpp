// Thresher's own strategies of the dual GEMM in a tournament.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "arena/dual_gemm/machine_code.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/options.hpp"
#include "arena/dual_gemm/task.hpp"
#include "ops/device_operations.hpp"
#include "ops/forecast.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "planner/feasible.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// What a user without Thresher does.
constexpr const char* baseline = "two_pass";

/// A plan for each input set, and one watched workspace that they share, since they run one after another.
class DualGemmRunner final : public Runner {
 public:
  DualGemmRunner(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options, Memory& memory,
                 const std::vector<DeviceSet>& sets)
      : sets_(sets) {
    for (const DeviceSet& set : sets) {
      plans_.push_back(plan(device, problem, set.tensor("b1"), set.tensor("b2"), options));
    }
    std::size_t bytes = 0;
    for (const DualGemm& gemm : plans_) {
      bytes = std::max(bytes, gemm.workspace_bytes());
    }
    if (bytes > 0) {
      workspace_ = std::make_unique<GuardedBuffer>(memory, bytes);
    }
  }

  void run(Stream stream, std::size_t set) override {
    plans_[set].run(stream, sets_[set].tensor("a"), sets_[set].tensor("c"), workspace_ ? workspace_->data() : nullptr);
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
    return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
  }

 private:
  const std::vector<DeviceSet>& sets_;
  std::vector<DualGemm> plans_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

int parse_threads(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knob threads is {}, but must be a whole number from 1 up", text));
  }
  return threads;
}

DualGemmOptions options_on(const ContestantSpec& spec, const Device& device) {
  if (device.kind() != DeviceKind::cpu) {
    return plan_options(spec);
  }
  DualGemmOptions options{.strategy = spec.strategy};
  for (const auto& [knob, value] : spec.knobs) {
    if (knob != "threads") {
      throw Error(ErrorCode::invalid_argument, fmt::format("contestant {}: there is no knob {} on {}, expected threads",
                                                           label(spec), knob, device.name()));
    }
    options.threads = parse_threads(value);
  }
  return options;
}

/// The planner's words for it; nothing where they depend on the problem, and for a strategy that it does not know.
/// Throws Error(invalid_argument) for knobs that it does not know.
std::optional<planner::DualGemmConfig> words_of(const ContestantSpec& spec) {
  if (!spec.knobs.empty() && !plan_options(spec).knobs.empty()) {
    return planner_config(spec);
  }
  try {
    return spec.strategy == "packed" ? std::nullopt : std::optional(planner_config(spec));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// What `plan` would launch; of a card for which there is no such kernel yet, what the planner says of one.
planner::Prediction predict(const DualGemmProblem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                            const planner::Calibration& calibration) {
  try {
    return ops::forecast(problem, plan_options(spec), device, calibration);
  } catch (const Error&) {
    const auto words = words_of(spec);
    if (!words) {
      throw;
    }
    return planner::predict(problem, *words, device, calibration);
  }
}

}  // namespace

std::vector<std::string> DualGemmOperation::contestants(const Device& device) const {
  std::vector<std::string> known = dual_gemm_strategies(device);
  const auto naive = std::find(known.begin(), known.end(), baseline);
  if (naive != known.end()) {
    std::rotate(known.begin(), naive, naive + 1);
  }
  return known;
}

void DualGemmOperation::check(const ContestantSpec& spec, const Device& device) const {
  const std::vector<std::string> known = contestants(device);
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", arena::label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
  (void)options_on(spec, device);
}

Numerics DualGemmOperation::numerics(const ContestantSpec& spec) const {
  return spec.knobs.contains("threads") ? Numerics::exact : ops::packing_numerics(plan_options(spec));
}

std::string DualGemmOperation::format_obstacle(const Problem& problem, const ContestantSpec& spec,
                                               const Device& device) const {
  return ops::operations_for(device.kind())
      .dual_gemm_format_obstacle(device, dual_gemm(problem), options_on(spec, device));
}

std::string DualGemmOperation::obstacle(const Problem& problem, const ContestantSpec& spec,
                                        const Device& device) const {
  return ops::operations_for(device.kind()).dual_gemm_obstacle(device, dual_gemm(problem), options_on(spec, device));
}

/// Float32 weights, for a strategy that expands them.
double DualGemmOperation::working_bytes(const Problem& problem) const {
  const DualGemmProblem& gemm = dual_gemm(problem);
  return 8.0 * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

PlanRequest DualGemmOperation::plan_request(const ContestantSpec& spec) const {
  const DualGemmOptions options = plan_options(spec);
  return {options.strategy, ops::planner_words(options.knobs), options.numerics};
}

MachineCode DualGemmOperation::machine_code(const Problem& problem, const ContestantSpec& spec,
                                            const DeviceSpec& device) const {
  return dual_gemm_machine_code(device, std::string(thresher::name(device.arch)), dual_gemm(problem),
                                plan_options(spec));
}

std::unique_ptr<Runner> DualGemmOperation::prepare(const Problem& problem, const ContestantSpec& spec,
                                                   const Device& device, Memory& memory,
                                                   const std::vector<DeviceSet>& sets) const {
  return std::make_unique<DualGemmRunner>(device, dual_gemm(problem), options_on(spec, device), memory, sets);
}

Outlook DualGemmOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                   const planner::Calibration& calibration) const {
  if (const auto words = words_of(spec)) {
    if (auto obstacles = planner::feasible(dual_gemm(problem), *words, device).obstacles; !obstacles.empty()) {
      return {.obstacles = std::move(obstacles)};
    }
  }
  try {
    return {.prediction = predict(dual_gemm(problem), spec, device, calibration)};
  } catch (const Error& error) {
    return {.obstacles = {error.what()}};
  }
}

}  // namespace thresher::arena
