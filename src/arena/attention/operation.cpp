// Attention in the arena.
#include <fmt/format.h>

#include <algorithm>

#include "arena/attention/inputs.hpp"
#include "arena/attention/inspector.hpp"
#include "arena/attention/judge.hpp"
#include "arena/attention/options.hpp"
#include "arena/attention/parts.hpp"
#include "arena/attention/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/operation/planned_runner.hpp"
#include "arena/operation/task_bytes.hpp"
#include "arena/random.hpp"
#include "ops/attention_call.hpp"
#include "ops/forecast.hpp"
#include "reference/attention_view.hpp"
#include "strategies/attention/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Sequences are not made shorter than this.
constexpr std::int64_t min_rows = 64;

/// Short and obviously right.
constexpr const char* baseline = "simple";

/// Contestants for measuring one step of a kernel's making: on long sequences they take seconds a call.
bool competes_when_pitched_alone(const std::string& strategy) { return strategy.starts_with("rows"); }

class AttentionOperation final : public Operation {
 public:
  // Its problems.
  [[nodiscard]] std::string_view name() const override { return "attention"; }
  void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const override {
    add_attention_problems(tables, problems);
  }
  [[nodiscard]] Problem example() const override { return problem_of(AttentionTask{{.format = Format::bf16}}); }
  [[nodiscard]] std::vector<ProblemOption> options() const override { return attention_problem_options(); }

  [[nodiscard]] std::string label(const Problem& problem) const override {
    return label_of(problem.as<AttentionTask>());
  }

  [[nodiscard]] Cost cost(const Problem& problem) const override {
    const auto& task = problem.as<AttentionTask>();
    const AttentionProblem& p = task.problem;
    double pairs = 0;
    double key_rows = 0;
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      const auto index = static_cast<std::size_t>(batch);
      const reference::Sequence sequence{0, p.variable_length ? task.query_lengths[index] : p.queries, 0,
                                         p.variable_length ? task.key_lengths[index] : p.keys};
      reference::KeyRange all{sequence.keys, 0};
      for (std::int64_t query = 0; query < sequence.queries; ++query) {
        const reference::KeyRange seen = reference::visible_keys(p, sequence, query);
        if (!seen.empty()) {
          pairs += static_cast<double>(seen.end - seen.begin);
          all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
        }
      }
      key_rows += all.empty() ? 0.0 : static_cast<double>((all.end - all.begin) * p.kv_heads);
    }
    const double query_rows =
        (p.variable_length ? 1 : static_cast<double>(p.batch)) * static_cast<double>(p.heads * p.queries);
    const auto width = static_cast<double>(p.head_dim);
    const auto value_width = static_cast<double>(effective_value_dim(p));
    const auto bytes_of = [](Format format) { return static_cast<double>(bits(format)) / 8; };
    return {2 * pairs * static_cast<double>(p.heads) * (width + value_width),
            query_rows * (width * bytes_of(effective_q_format(p)) + value_width * bytes_of(p.format)) +
                key_rows * (width + value_width) * bytes_of(effective_kv_format(p)) + (task.lse ? 4 * query_rows : 0)};
  }

  /// The pool, of which no sequence uses some.
  [[nodiscard]] double working_bytes(const Problem& problem) const override {
    const AttentionProblem& p = problem.as<AttentionTask>().problem;
    return static_cast<double>(p.pages) * static_cast<double>(p.page_size) * static_cast<double>(p.kv_heads) *
           static_cast<double>(p.head_dim + effective_value_dim(p)) * bits(effective_kv_format(p)) / 8;
  }

  [[nodiscard]] std::optional<Problem> neighbour(const Problem& problem) const override {
    auto near = problem.as<AttentionTask>();
    if (near.problem.page_size > 0) {
      near.lengths = SequenceLengths::listed;
      for (std::int64_t& keys : near.key_lengths) {
        keys += 3;
      }
      near.query_lengths.push_back(2);
      near.key_lengths.push_back(37);
      return problem_of(completed(std::move(near)));
    }
    if (near.problem.variable_length) {
      return std::nullopt;
    }
    near.problem.queries += 3;
    near.problem.keys += 5;
    return problem_of(std::move(near));
  }

  [[nodiscard]] std::optional<Problem> smaller(const Problem& problem) const override {
    auto half = problem.as<AttentionTask>();
    AttentionProblem& p = half.problem;
    if (p.page_size > 0) {
      if (*std::max_element(half.key_lengths.begin(), half.key_lengths.end()) < 2 * min_rows) {
        return std::nullopt;
      }
      half.lengths = SequenceLengths::listed;
      for (auto* const lengths : {&half.query_lengths, &half.key_lengths}) {
        for (std::int64_t& length : *lengths) {
          length = (length + 1) / 2;
        }
      }
      return problem_of(completed(std::move(half)));
    }
    std::int64_t& longest = p.queries > p.keys ? p.queries : p.keys;
    std::int64_t& greatest = longest >= 2 * min_rows ? longest : p.batch;
    if (p.variable_length || greatest < 2) {
      return std::nullopt;
    }
    greatest /= 2;
    return problem_of(std::move(half));
  }

  // Its data.
  [[nodiscard]] bool offers(const Problem&, Distribution distribution) const override {
    // The contest is one of dual GEMMs; and no exponential but that of 0 is exact.
    return distribution != Distribution::contest && distribution != Distribution::integers;
  }

  [[nodiscard]] std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const override {
    return attention_inputs(problem.as<AttentionTask>(), distribution, seed);
  }

  [[nodiscard]] std::vector<HostTensor> outputs(const Problem& problem) const override {
    return attention_outputs(problem.as<AttentionTask>());
  }

  [[nodiscard]] std::unique_ptr<Judge> judge(const Problem& problem, Distribution,
                                             const std::vector<HostTensor>& inputs, const Maker&,
                                             std::uint64_t seed) const override {
    return make_attention_judge(problem.as<AttentionTask>(), inputs, seed);
  }

  [[nodiscard]] std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker&,
                                                     std::uint64_t seed) const override {
    return make_attention_inspector(problem.as<AttentionTask>(), inputs, seed);
  }

  /// Rows of a pool stay where they are, since some are unowned.
  [[nodiscard]] std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                  std::size_t index) const override {
    const bool has_pool =
        std::any_of(inputs.begin(), inputs.end(), [](const HostTensor& input) { return input.name == "block_table"; });
    if (!has_pool) {
      return Operation::variation(inputs, index);
    }
    std::vector<HostTensor> varied = inputs;
    Random random(derive_seed(index, "variation"));
    for (HostTensor& input : varied) {
      flip_signs(input, random);
    }
    return varied;
  }

  [[nodiscard]] std::optional<std::vector<HostTensor>> rearranged(const Problem& problem, Distribution distribution,
                                                                  std::uint64_t change,
                                                                  std::uint64_t seed) const override {
    const auto& task = problem.as<AttentionTask>();
    if (!task.problem.variable_length) {
      return std::nullopt;
    }
    return attention_inputs(task, other_lengths(task, change, seed), distribution, derive_seed(seed, "rearranged"));
  }

  [[nodiscard]] bool uses_every_element(const Problem& problem) const override {
    const AttentionProblem& p = problem.as<AttentionTask>().problem;
    return p.page_size == 0 && p.window_left < 0 && p.window_right < 0;
  }

  // Its strategies.
  [[nodiscard]] std::vector<std::string> contestants(DeviceKind kind) const override {
    std::vector<std::string> known = strategy_names(strategies::attention::registry().of(kind));
    std::stable_partition(known.begin(), known.end(), [](const std::string& name) { return name == baseline; });
    std::erase_if(known, competes_when_pitched_alone);
    if (known.size() > 1) {
      known.emplace_back(planned_strategy);
    }
    return known;
  }

  /// Knobs: threads on the CPU; dependent_launch (0 or 1) and the strategy's own on a GPU.
  void check(const ContestantSpec& spec, const Device& device) const override {
    std::vector<std::string> known = attention_strategies(device);
    known.emplace_back(planned_strategy);
    require_known(spec, device, known);
    for (const auto& [knob, value] : spec.knobs) {
      if (device.kind() == DeviceKind::cpu && knob != "threads") {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("contestant {}: there is no knob {} on {}, expected threads", arena::label(spec), knob,
                                device.name()));
      }
    }
    (void)attention_options(spec);
  }

  [[nodiscard]] std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                     const Device& device) const override {
    const std::string found =
        ops::attention_obstacle(device, problem.as<AttentionTask>().problem, attention_options(spec));
    return found.empty() ? "" : fmt::format("{}: {}", label(problem), found);
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                         const DeviceSpec& device) const override {
    return machine_code_of(ops::attention_call(problem.as<AttentionTask>().problem, attention_options(spec), device),
                           std::string(thresher::name(device.arch)));
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const auto& task = problem.as<AttentionTask>();
    constexpr const char* no_weights = "";
    return make_planned_runner(
        memory, sets, no_weights,
        [&](const FindTensor&) { return plan(device, task.problem, attention_options(spec)); },
        [&](const FindTensor& find) { return attention_tensors(task, find); });
  }

  /// The planner has no words for every kernel of attention.
  [[nodiscard]] PlannerResult outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                      const planner::Calibration& calibration) const override {
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

  [[nodiscard]] const EmulatedOperation* emulated() const override { return attention_emulation(); }
  [[nodiscard]] std::vector<CalibrationCase> calibration_cases() const override {
    return attention_calibration_cases();
  }
  [[nodiscard]] bool is_timed_warm() const override { return true; }

  [[nodiscard]] std::vector<Argument> arguments(const Problem& problem, const FindTensor& find) const override {
    return attention_arguments(problem.as<AttentionTask>(), find);
  }
  [[nodiscard]] std::string formats_text(const Problem& problem) const override {
    return attention_formats(problem.as<AttentionTask>());
  }
  [[nodiscard]] std::string bytes(const Problem& problem) const override {
    return bytes_of(problem.as<AttentionTask>());
  }
  [[nodiscard]] Problem from_bytes(std::string_view bytes) const override {
    return problem_of(task_from<AttentionTask>(bytes));
  }
};

}  // namespace

const Operation& attention_operation() {
  static const AttentionOperation operation;
  return operation;
}

}  // namespace thresher::arena
