// Thresher's own strategies of the dual GEMM in a tournament.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "arena/dual_gemm/machine_code.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/options.hpp"
#include "arena/dual_gemm/task.hpp"
#include "ops/dual_gemm_choice.hpp"
#include "ops/forecast.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;

/// What a user without Thresher does.
constexpr const char* baseline = "two_pass";

/// A plan for each pair of weights, which several sets may share, and one watched workspace for all, since they run one
/// after another.
class DualGemmRunner final : public Runner {
 public:
  DualGemmRunner(const Device& device, const DualGemmProblem& problem, const DualGemmOptions& options, Memory& memory,
                 const std::vector<DeviceSet>& sets)
      : sets_(sets) {
    std::map<std::pair<const void*, const void*>, DualGemm> by_weights;
    std::size_t bytes = 0;
    for (const DeviceSet& set : sets) {
      const Tensor& b1 = set.tensor("b1");
      const Tensor& b2 = set.tensor("b2");
      auto known = by_weights.find({b1.data, b2.data});
      if (known == by_weights.end()) {
        known = by_weights.emplace(std::pair{b1.data, b2.data}, plan(device, problem, b1, b2, options)).first;
      }
      plans_.push_back(known->second);
      bytes = std::max(bytes, known->second.workspace_bytes());
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
  std::vector<DualGemm> plans_;  ///< of each set
  std::unique_ptr<GuardedBuffer> workspace_;
};

}  // namespace

std::vector<std::string> DualGemmOperation::contestants(DeviceKind kind) const {
  std::vector<std::string> known;
  for (const auto* strategy : strategies::gemm::strategies_of(Product::dual_gemm, kind)) {
    known.emplace_back(strategy->name());
  }
  const auto naive = std::find(known.begin(), known.end(), baseline);
  if (naive != known.end()) {
    std::rotate(known.begin(), naive, naive + 1);
  }
  return known;
}

void DualGemmOperation::check(const ContestantSpec& spec, const Device& device) const {
  const std::vector<std::string> known = contestants(device.kind());
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", arena::label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
  ops::check_dual_gemm_knobs(device, dual_gemm(example()), plan_options(spec));
}

Numerics DualGemmOperation::numerics(const ContestantSpec& spec) const {
  const auto asked = spec.knobs.find("numerics");
  return asked != spec.knobs.end() && asked->second == thresher::name(Numerics::fast) ? Numerics::fast
                                                                                      : Numerics::exact;
}

std::string DualGemmOperation::format_obstacle(const Problem& problem, const ContestantSpec& spec,
                                               const Device& device) const {
  return ops::dual_gemm_format_obstacle(device, dual_gemm(problem), plan_options(spec));
}

std::string DualGemmOperation::obstacle(const Problem& problem, const ContestantSpec& spec,
                                        const Device& device) const {
  return ops::dual_gemm_obstacle(device, dual_gemm(problem), plan_options(spec));
}

/// Float32 weights, for a strategy that expands them.
double DualGemmOperation::working_bytes(const Problem& problem) const {
  const DualGemmProblem& gemm = dual_gemm(problem);
  return 8.0 * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

PlanRequest DualGemmOperation::plan_request(const ContestantSpec& spec) const {
  const DualGemmOptions options = plan_options(spec);
  return {options.strategy, options.knobs.text()};
}

MachineCode DualGemmOperation::machine_code(const Problem& problem, const ContestantSpec& spec,
                                            const DeviceSpec& device) const {
  return dual_gemm_machine_code(device, std::string(thresher::name(device.arch)), dual_gemm(problem),
                                plan_options(spec));
}

std::unique_ptr<Runner> DualGemmOperation::prepare(const Problem& problem, const ContestantSpec& spec,
                                                   const Device& device, Memory& memory,
                                                   const std::vector<DeviceSet>& sets) const {
  return std::make_unique<DualGemmRunner>(device, dual_gemm(problem), plan_options(spec), memory, sets);
}

PlannerResult DualGemmOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                         const planner::Calibration& calibration) const {
  try {
    if (std::string obstacle =
            ops::dual_gemm_format_obstacle(DeviceKind::cuda, device, dual_gemm(problem), plan_options(spec));
        !obstacle.empty()) {
      return {.infeasible_reasons = {std::move(obstacle)}, .is_for_other_formats = true};
    }
    const strategies::PlannedCall call = ops::planned_call(dual_gemm(problem), plan_options(spec), device);
    return {.work = call.work, .prediction = ops::forecast(call, device, calibration)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      throw;  // a strategy, a knob or a value that there is not
    }
    return {.infeasible_reasons = {error.what()}};
  }
}

}  // namespace thresher::arena
