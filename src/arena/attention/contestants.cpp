// Thresher's own strategies of attention in a tournament.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "arena/attention/inputs.hpp"
#include "arena/attention/operation.hpp"
#include "arena/attention/options.hpp"
#include "arena/attention/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "ops/attention_call.hpp"
#include "ops/forecast.hpp"
#include "strategies/attention/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Short and obviously right.
constexpr const char* baseline = "simple";

/// One plan for all input sets: it is bound to no tensor.
class AttentionRunner final : public Runner {
 public:
  AttentionRunner(const Device& device, const AttentionTask& task, const AttentionOptions& options, Memory& memory,
                  const std::vector<DeviceSet>& sets)
      : attention_(plan(device, task.problem, options)) {
    for (const DeviceSet& set : sets) {
      calls_.push_back(attention_tensors(task, [&](std::string_view name) {
        const Tensor* const known = set.find(name);
        return known == nullptr ? Tensor{} : *known;
      }));
    }
    if (attention_.workspace_bytes() > 0) {
      workspace_.emplace(memory, attention_.workspace_bytes());
    }
  }

  void run(Stream stream, std::size_t set) override {
    attention_.run(stream, calls_[set], workspace_ ? workspace_->data() : nullptr);
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
    return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
  }

 private:
  Attention attention_;
  std::vector<AttentionTensors> calls_;
  std::optional<GuardedBuffer> workspace_;
};

/// Contestants for measuring one step of a kernel's making: on long sequences they take seconds a call.
bool competes_when_pitched_alone(const std::string& strategy) { return strategy.starts_with("rows"); }

}  // namespace

std::vector<std::string> AttentionOperation::contestants(DeviceKind kind) const {
  std::vector<std::string> known;
  for (const auto* strategy : strategies::attention::registry().of(kind)) {
    known.emplace_back(strategy->name());
  }
  const auto simple = std::find(known.begin(), known.end(), baseline);
  if (simple != known.end()) {
    std::rotate(known.begin(), simple, simple + 1);
  }
  std::erase_if(known, competes_when_pitched_alone);
  if (known.size() > 1) {
    known.emplace_back(planned_strategy);
  }
  return known;
}

/// Knobs: threads on the CPU; dependent_launch (0 or 1) and the strategy's own on a GPU.
void AttentionOperation::check(const ContestantSpec& spec, const Device& device) const {
  std::vector<std::string> known = attention_strategies(device);
  known.emplace_back(planned_strategy);
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", arena::label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
  for (const auto& [knob, value] : spec.knobs) {
    if (device.kind() == DeviceKind::cpu && knob != "threads") {
      throw Error(ErrorCode::invalid_argument, fmt::format("contestant {}: there is no knob {} on {}, expected threads",
                                                           arena::label(spec), knob, device.name()));
    }
  }
  (void)attention_options(spec);
}

std::string AttentionOperation::obstacle(const Problem& problem, const ContestantSpec& spec,
                                         const Device& device) const {
  const std::string found =
      ops::attention_obstacle(device, problem.as<AttentionTask>().problem, attention_options(spec));
  return found.empty() ? "" : fmt::format("{}: {}", label(problem), found);
}

PlanRequest AttentionOperation::plan_request(const ContestantSpec& spec) const {
  std::vector<std::string> knobs;
  for (const auto& [knob, value] : spec.knobs) {
    knobs.push_back(knob + "=" + value);
  }
  return {spec.strategy, fmt::format("{}", fmt::join(knobs, " "))};
}

MachineCode AttentionOperation::machine_code(const Problem& problem, const ContestantSpec& spec,
                                             const DeviceSpec& device) const {
  return machine_code_of(ops::attention_call(problem.as<AttentionTask>().problem, attention_options(spec), device),
                         std::string(thresher::name(device.arch)));
}

std::unique_ptr<Runner> AttentionOperation::prepare(const Problem& problem, const ContestantSpec& spec,
                                                    const Device& device, Memory& memory,
                                                    const std::vector<DeviceSet>& sets) const {
  return std::make_unique<AttentionRunner>(device, problem.as<AttentionTask>(), attention_options(spec), memory, sets);
}

/// The planner has no words for every kernel of attention.
PlannerResult AttentionOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                          const planner::Calibration& calibration) const {
  try {
    const strategies::PlannedCall call =
        ops::planned_call(problem.as<AttentionTask>().problem, attention_options(spec), device);
    return {.work = call.work, .prediction = ops::forecast(call, device, calibration)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      throw;  // a strategy, a knob or a value that there is not
    }
    return {.infeasible_reasons = {error.what()}, .is_unknown = true};
  }
}

}  // namespace thresher::arena
