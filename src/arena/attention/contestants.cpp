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

/// Offsets of sequences in a device's memory; they belong to the problem and not to an input set.
class DeviceOffsets {
 public:
  DeviceOffsets(Memory& memory, const std::vector<std::int64_t>& lengths)
      : offsets_(offsets_of(lengths)), buffer_(memory, offsets_.size() * sizeof(std::int32_t)) {
    memory.upload(buffer_.data(), offsets_.data(), buffer_.bytes());
    tensor_ = Tensor::contiguous(buffer_.data(), Format::int32, {static_cast<std::int64_t>(offsets_.size())});
    tensor_.device = memory.device();
  }
  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] std::optional<GuardDamage> damage() const { return buffer_.damage(); }

 private:
  std::vector<std::int32_t> offsets_;
  GuardedBuffer buffer_;
  Tensor tensor_;
};

/// One plan for all input sets: it is bound to no tensor.
class AttentionRunner final : public Runner {
 public:
  AttentionRunner(const Device& device, const AttentionTask& task, const AttentionOptions& options, Memory& memory,
                  const std::vector<DeviceSet>& sets)
      : attention_(plan(device, task.problem, options)) {
    if (task.problem.variable_length) {
      query_offsets_.emplace(memory, task.query_lengths);
      key_offsets_.emplace(memory, task.key_lengths);
    }
    for (const DeviceSet& set : sets) {
      AttentionTensors tensors = attention_tensors(task, [&](std::string_view name) { return set.tensor(name); });
      if (query_offsets_) {
        tensors.cu_seqlens_q = query_offsets_->tensor();
        tensors.cu_seqlens_k = key_offsets_->tensor();
      }
      calls_.push_back(tensors);
    }
    if (attention_.workspace_bytes() > 0) {
      workspace_.emplace(memory, attention_.workspace_bytes());
    }
  }

  void run(Stream stream, std::size_t set) override {
    attention_.run(stream, calls_[set], workspace_ ? workspace_->data() : nullptr);
  }

  [[nodiscard]] std::vector<std::string> guard_damage() const override {
    std::vector<std::string> sentences;
    const auto look = [&](const std::optional<GuardDamage>& damage, const char* name) {
      if (damage) {
        sentences.push_back(describe(*damage, name));
      }
    };
    look(workspace_ ? workspace_->damage() : std::nullopt, "its workspace");
    look(query_offsets_ ? query_offsets_->damage() : std::nullopt, "cu_seqlens_q");
    look(key_offsets_ ? key_offsets_->damage() : std::nullopt, "cu_seqlens_k");
    return sentences;
  }

 private:
  Attention attention_;
  std::optional<DeviceOffsets> query_offsets_;
  std::optional<DeviceOffsets> key_offsets_;
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
Outlook AttentionOperation::outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                    const planner::Calibration& calibration) const {
  try {
    const strategies::PlannedCall call =
        ops::planned_call(problem.as<AttentionTask>().problem, attention_options(spec), device);
    return {.work = call.work, .prediction = ops::forecast(call, device, calibration)};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) {
      throw;  // a strategy, a knob or a value that there is not
    }
    return {.obstacles = {error.what()}, .is_unknown = true};
  }
}

}  // namespace thresher::arena
