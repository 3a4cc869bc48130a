#include "arena/attention/contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "arena/attention/inputs.hpp"
#include "arena/attention/machine_code.hpp"
#include "arena/contestants/toolchain.hpp"
#include "arena/emulation/attention.hpp"
#include "arena/operation.hpp"
#include "ops/attention_backend.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

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

class AttentionContestant final : public Contestant {
 public:
  AttentionContestant(ContestantSpec spec, Device device, AttentionOptions options)
      : Contestant(std::move(spec)), device_(std::move(device)), options_(std::move(options)) {}

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    const std::string obstacle =
        ops::attention_operations_for(device_.kind()).obstacle(device_, problem.attention.problem, options_);
    if (!obstacle.empty()) {
      return {false, fmt::format("{}: {}", label(problem), obstacle), "{}"};
    }
    // Two input sets for the gate `correct`.
    const double needed = 2 * find_operation(problem.operation).cost(problem).compulsory_bytes;
    return fits_in_memory(problem, needed, memory);
  }

  [[nodiscard]] Answer compile(const Problem& problem) const override {
    const std::string host = fmt::format("compiled with Thresher itself by {}", compiler());
    return device_.kind() == DeviceKind::cpu ? Answer{true, host, "{}"} : compiled(machine_code(problem), host);
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    if (device_.kind() == DeviceKind::cpu) {
      return Contestant::machine_code(problem);
    }
    const runtime::DeviceProperties& properties = runtime::device_properties(device_.id().ordinal);
    return attention_machine_code(problem.attention.problem, options_, properties.multiprocessors, properties.arch());
  }

  [[nodiscard]] Emulation emulation(const Problem& problem) const override {
    if (device_.kind() == DeviceKind::cpu) {
      return {nullptr, "a program of the CPU: there is no GPU kernel to emulate"};
    }
    const AttentionProblem& wanted = problem.attention.problem;
    const int multiprocessors = runtime::device_properties(device_.id().ordinal).multiprocessors;
    return {make_attention_emulation(wanted, ops::choose_attention(wanted, options_, multiprocessors)), ""};
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<AttentionRunner>(device_, problem.attention, options_, memory, sets);
  }

 private:
  Device device_;
  AttentionOptions options_;
};

int whole_number(const ContestantSpec& spec, const std::string& knob, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: knob {} is {}, but must be a whole number", label(spec), knob, text));
  }
  return value;
}

}  // namespace

AttentionOptions attention_options(const ContestantSpec& spec) {
  AttentionOptions options;
  options.strategy = spec.strategy == planned_strategy ? "" : spec.strategy;
  for (const auto& [knob, text] : spec.knobs) {
    const int value = whole_number(spec, knob, text);
    if (knob == "threads") {
      options.threads = value;
    } else if (knob == "dependent_launch") {
      options.dependent_launch = value != 0;
    } else {
      options.knobs.set(knob, std::to_string(value));
    }
  }
  return options;
}

std::vector<std::string> attention_contestants(const Device& device) {
  std::vector<std::string> known = attention_strategies(device);
  const auto simple = std::find(known.begin(), known.end(), "simple");  // the baseline: short and obviously right
  if (simple != known.end()) {
    std::rotate(known.begin(), simple, simple + 1);
  }
  // The first steps of a kernel compete only when they are pitched: on long sequences they take seconds a call.
  std::erase_if(known, [](const std::string& strategy) { return strategy.starts_with("rows"); });
  if (known.size() > 1) {
    known.emplace_back(planned_strategy);
  }
  return known;
}

std::unique_ptr<Contestant> make_attention_contestant(const ContestantSpec& spec, const Device& device) {
  std::vector<std::string> known = attention_strategies(device);
  known.emplace_back(planned_strategy);
  if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", label(spec),
                            device.name(), fmt::join(known, ", ")));
  }
  for (const auto& [knob, value] : spec.knobs) {
    if (device.kind() == DeviceKind::cpu && knob != "threads") {
      throw Error(ErrorCode::invalid_argument, fmt::format("contestant {}: there is no knob {} on {}, expected threads",
                                                           label(spec), knob, device.name()));
    }
  }
  return std::make_unique<AttentionContestant>(spec, device, attention_options(spec));
}

}  // namespace thresher::arena
