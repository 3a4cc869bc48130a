// Attention's kernels in the emulator.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "arena/attention/inputs.hpp"
#include "arena/attention/judge.hpp"
#include "arena/attention/options.hpp"
#include "arena/attention/parts.hpp"
#include "arena/attention/task.hpp"
#include "arena/emulation/card_for.hpp"
#include "arena/emulation/dependent_launch.hpp"
#include "arena/emulation/planned_run.hpp"
#include "ops/attention_call.hpp"
#include "ops/validate_attention.hpp"
#include "strategies/attention/launch.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/attention/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using AttentionStrategy = strategies::Strategy<AttentionProblem>;

/// Where there are many keys, logits that are far apart, so that the softmax moves from block to block; NaN and
/// infinities under a window, where some rows do not see them.
Distribution distribution_of(const AttentionTask& task) {
  if (task.problem.window_left >= 0) {
    return Distribution::specials;
  }
  return task.problem.variable_length ? Distribution::normal : Distribution::full_range;
}

/// The memory of one call.
struct Storage {
  explicit Storage(const AttentionTask& task)
      : inputs(attention_inputs(task, distribution_of(task), 1)), outputs(attention_outputs(task)) {}

  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
};

std::vector<strategies::NamedTensor> tensors_of(const AttentionTask& task, const Storage& storage) {
  const AttentionTensors found = attention_tensors(task, find_in(storage.inputs, storage.outputs));
  return named_tensors(strategies::attention::tensor_names, strategies::attention::in_order(found));
}

/// Shares that add up to `total`, as unequal as `weights`.
std::vector<std::int64_t> shares(std::int64_t total, std::int64_t count, std::array<std::int64_t, 4> weights) {
  std::vector<std::int64_t> all;
  std::int64_t given = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    all.push_back(is_last ? total - given : total * weights[static_cast<std::size_t>(i) % 4] / (8 * count));
    given += all.back();
  }
  return all;
}

/// Lengths that use all packed keys. Paged sequences have up to problem.keys each, and some have none.
std::vector<std::int64_t> key_lengths_of(const AttentionProblem& problem) {
  if (problem.page_size == 0) {
    return shares(problem.keys, problem.batch, {1, 20, 4, 7});
  }
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < problem.batch; ++i) {
    const std::array<std::int64_t, 4> some{problem.keys, problem.keys / 3 + 1, 0, problem.keys / 2};
    all.push_back(some[static_cast<std::size_t>(i) % some.size()]);
  }
  return all;
}

class AttentionKernel final : public EmulatedKernel {
 public:
  /// `knobs` are all of the strategy's; the code depends on the problem's format, head dimension and logits too.
  AttentionKernel(const AttentionStrategy& strategy, const AttentionProblem& problem, Knobs knobs,
                  const DeviceSpec& device)
      : strategy_(strategy), problem_(problem), knobs_(as_dependent(strategy, std::move(knobs))), device_(device) {
    problem_.softcap = strategies::attention::has_general_logits(problem) ? 2.0F : 0.0F;
    problem_.scale.reset();
  }

  [[nodiscard]] std::string title() const override {
    const std::int64_t value_dim = effective_value_dim(problem_);
    return fmt::format(
        "attention {} {}{}, head dimension {}{}{}{}{}{}", strategy_.name(), thresher::name(problem_.format),
        problem_.kv_format
            ? fmt::format(", {} {}keys", thresher::name(*problem_.kv_format), problem_.q_format ? "queries and " : "")
            : "",
        problem_.head_dim, value_dim == problem_.head_dim ? "" : fmt::format(" ({} of values)", value_dim),
        problem_.page_size > 0 ? fmt::format(", pages of {}", problem_.page_size) : "",
        problem_.softcap > 0 ? ", softcap" : "", knobs_.empty() ? "" : ", ", knobs_.text());
  }

  [[nodiscard]] std::string key() const override {
    const strategies::PlannedCall call = strategy_.plan(small_problems().front(), knobs_, device_);
    return std::get<strategies::KernelLaunch>(call.steps.front()).expression;
  }

  [[nodiscard]] std::string arguments(const Problem&) const override {
    std::string text = fmt::format("attention --strategy {}{} --device {} --a {} --head-dim {}", strategy_.name(),
                                   knobs_.empty() ? "" : fmt::format(" --knobs \"{}\"", knobs_.text()), device_.name,
                                   thresher::name(problem_.format), problem_.head_dim);
    text += problem_.value_dim > 0 ? fmt::format(" --value-dim {}", problem_.value_dim) : "";
    text += problem_.q_format ? " --fp8-queries" : problem_.kv_format ? " --fp8-keys" : "";
    text += problem_.page_size > 0 ? fmt::format(" --page-size {}", problem_.page_size) : "";
    return text + (problem_.softcap > 0 ? " --softcap" : "");
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> problems;
    for (const AttentionProblem& problem : small_problems()) {
      AttentionTask task{.problem = problem, .lse = !problem.variable_length, .rows_first = problem.window_left < 0};
      if (problem.variable_length) {  // some without queries
        task.query_lengths = shares(problem.queries, problem.batch, {0, 16, 0, 16});
        task.key_lengths = key_lengths_of(problem);
        task = completed(std::move(task));
      }
      problems.push_back(problem_of(task));
    }
    return problems;
  }

  void check(const Problem& wanted) const override { (void)taken(wanted); }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const AttentionTask task = taken(wanted);
    const auto storage = std::make_shared<Storage>(task);
    return std::make_unique<PlannedRun>(
        strategy_.plan(task.problem, knobs_, device_), tensors_of(task, *storage),
        [storage, task] { return make_attention_judge(task, storage->inputs, 1)->judge(storage->outputs); });
  }

 private:
  /// The wanted shape in this kernel's formats.
  [[nodiscard]] AttentionTask taken(const Problem& wanted) const {
    auto task = wanted.as<AttentionTask>();
    task.problem.format = problem_.format;
    task.problem.head_dim = problem_.head_dim;
    task.problem.value_dim = problem_.value_dim;
    task.problem.kv_format = problem_.kv_format;
    task.problem.q_format = problem_.q_format;
    task.problem.softcap = problem_.softcap;
    task.problem.scale.reset();
    if (const auto infeasible_reasons = strategy_.infeasible_reasons(task.problem, knobs_, device_);
        !infeasible_reasons.empty()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} cannot be emulated on {}: {}", title(), label(wanted),
                                                           fmt::join(infeasible_reasons, "; ")));
    }
    return task;
  }
  [[nodiscard]] std::vector<AttentionProblem> small_problems() const {
    return strategy_.edges(problem_, knobs_, device_);
  }

  const AttentionStrategy& strategy_;
  AttentionProblem problem_;
  Knobs knobs_;
  DeviceSpec device_;
};

/// The kernel of `knobs`, of which those that are not given are the strategy's choice: for `problem`, or where it
/// cannot run that, for the small problems of these knobs.
std::shared_ptr<const EmulatedKernel> kernel_of(const AttentionStrategy& strategy, AttentionProblem problem,
                                                const Knobs& knobs, const DeviceSpec& device) {
  if (!strategy.infeasible_reasons(problem, knobs, device).empty()) {
    const AttentionProblem small = strategy.edges(problem, knobs, device).front();
    const bool is_its_kind = (small.page_size > 0) == (problem.page_size > 0) && small.kv_format == problem.kv_format &&
                             small.q_format == problem.q_format &&
                             effective_value_dim(small) == effective_value_dim(problem);
    problem = is_its_kind ? small : problem;  // else it is refused below
  }
  Knobs all = strategy.plan(problem, knobs, device).knobs;
  return std::make_shared<const AttentionKernel>(strategy, problem, std::move(all), device);
}

class AttentionEmulation final : public EmulatedOperation {
 public:
  [[nodiscard]] std::vector<std::string> strategies() const override { return strategy_names(all()); }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const AttentionProblem& wanted = problem.as<AttentionTask>().problem;
    ops::validate(wanted);
    const Knobs knobs = Knobs::parse(request.knobs);
    const bool is_named = !request.strategy.empty() && request.strategy != planned_strategy;
    const AttentionStrategy* strategy = is_named ? find(request.strategy) : nullptr;
    if (strategy == nullptr) {
      const strategies::PlannedCall call =
          ops::attention_call(wanted, {.strategy = is_named ? request.strategy : "", .knobs = knobs}, device);
      strategy = find(call.strategy);
    }
    if (const std::optional<std::string> reason = strategy->unsupported_reason(wanted, device)) {
      return {nullptr, *reason};
    }
    return {kernel_of(*strategy, wanted, knobs, device), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& name, const DeviceSpec* wanted_card) const override {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    const AttentionStrategy& strategy = *find(name);
    for (const auto& sample : strategy.samples()) {
      if (const DeviceSpec* const card = card_for(strategy, sample.problem, wanted_card)) {
        found.push_back(kernel_of(strategy, sample.problem, sample.knobs, *card));
      }
    }
    return found;
  }

 private:
  static strategies::Strategies<AttentionProblem> all() {
    return strategies::attention::registry().of(DeviceKind::cuda);
  }
  static const AttentionStrategy* find(const std::string& name) {
    return strategies::find_strategy<AttentionProblem>(all(), name);
  }
};

}  // namespace

const EmulatedOperation* attention_emulation() {
  static const AttentionEmulation kernels;
  return &kernels;
}

}  // namespace thresher::arena
