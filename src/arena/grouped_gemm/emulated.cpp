// The kernels of the grouped products in the emulator.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arena/emulation/card_for.hpp"
#include "arena/emulation/planned_run.hpp"
#include "arena/grouped_gemm/inputs.hpp"
#include "arena/grouped_gemm/judge.hpp"
#include "arena/grouped_gemm/operation.hpp"
#include "arena/grouped_gemm/task.hpp"
#include "ops/forecast.hpp"
#include "strategies/gemm/dense.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace tensors = strategies::grouped_gemm;
using strategies::PlannedCall;
using Strategy = strategies::Strategy<strategies::gemm::ProductProblem>;

bool only_launches(const PlannedCall& call) {
  return std::all_of(call.steps.begin(), call.steps.end(), [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  });
}

/// What of a problem without counts the emulator runs: ragged groups, an empty one, one of a single row, rows of
/// nobody.
GroupedTask ragged(const GroupedProblem& problem, std::optional<GateUpOrder> order) {
  GroupedTask task;
  task.problem = problem;
  task.order = problem.activation ? order : std::nullopt;
  task.counts.assign(static_cast<std::size_t>(problem.experts), 0);
  const bool has_slots = problem.layout == RowLayout::slots;
  std::int64_t left = has_slots ? problem.rows * problem.experts : problem.rows;
  for (std::size_t expert = 0; expert < task.counts.size(); ++expert) {
    const std::int64_t share =
        has_slots ? problem.rows : std::max<std::int64_t>(left / 2, expert + 1 == task.counts.size() ? left : 1);
    task.counts[expert] = expert % 3 == 1 ? static_cast<std::int64_t>(expert % 2) : std::min(left, share);
    left -= task.counts[expert];
  }
  task.margin = !has_slots && left > 1 ? left / 2 : 0;
  task.problem.rows = has_slots ? problem.rows : 0;
  if (problem.layout == RowLayout::gathered) {
    task.skipped = 5;
    task.problem.tokens = std::max<std::int64_t>(problem.tokens, 1);
  }
  return completed(std::move(task));
}

/// The same of a GEMM: one expert owns every row.
GroupedTask dense(const GroupedProblem& problem) {
  return dense_task({.m = problem.rows,
                     .n = problem.n,
                     .k = problem.k,
                     .a = problem.a,
                     .b = problem.b,
                     .out = problem.out,
                     .bias = problem.bias});
}

/// What a GEMM has too.
bool may_be_dense(const GroupedProblem& problem) {
  return !problem.activation && !problem.row_weights && problem.layout == RowLayout::packed;
}

/// The tensors of one call.
struct CallStorage {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;

  [[nodiscard]] Tensor view(std::string_view name) {
    for (auto* const tensors : {&inputs, &outputs}) {
      for (HostTensor& one : *tensors) {
        if (one.name == name) {
          return one.view();
        }
      }
    }
    return {};
  }
};

std::unique_ptr<EmulatedRun> run_of(PlannedCall call, const GroupedTask& task) {
  const Distribution distribution = bits(task.problem.b) < 16 ? Distribution::full_range : Distribution::normal;
  const auto storage =
      std::make_shared<CallStorage>(CallStorage{grouped_inputs(task, distribution, 1), grouped_outputs_of(task)});
  const FindTensor find = [&](std::string_view name) { return storage->view(name); };
  constexpr std::array names{"a", "b1 (gate)", "b2 (up)", "gate bias",  "up bias",
                             "c", "offsets",   "row_ids", "row_weights"};
  const auto in_order = tensors::in_order(weight_views(grouped_weights(task, find)), grouped_tensors(task, find));
  std::vector<strategies::NamedTensor> named;
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    named.push_back({names[i], in_order[i]});
  }
  const std::string* const numerics = call.knobs.find("numerics");
  const bool folds = numerics != nullptr && *numerics == name(Numerics::fast);
  const Maker maker{DeviceKind::cuda, folds ? Numerics::fast : Numerics::exact};
  return std::make_unique<PlannedRun>(std::move(call), std::move(named), [storage, task, distribution, maker] {
    return make_grouped_judge(task, distribution, storage->inputs, maker, 1)->judge(storage->outputs);
  });
}

/// What a strategy launches with one set of knobs.
class PlannedKernel final : public EmulatedKernel {
 public:
  PlannedKernel(const Strategy& strategy, GroupedTask task, Knobs knobs, const DeviceSpec& device)
      : strategy_(strategy), task_(std::move(task)), knobs_(std::move(knobs)), device_(device) {}

  [[nodiscard]] std::string title() const override {
    const PlannedCall planned = call(task_.problem);
    // Behind the product there may be a launch that requantises.
    const auto product = std::find_if(planned.steps.begin(), planned.steps.end(), [](const strategies::Step& step) {
      return std::get<strategies::KernelLaunch>(step).persistent;
    });
    const auto& launch =
        std::get<strategies::KernelLaunch>(product == planned.steps.end() ? planned.steps.back() : *product);
    return fmt::format("{} ({})", launch.program.title, knobs_.text());
  }
  [[nodiscard]] std::string key() const override {
    std::string key;
    for (const strategies::Step& step : call(task_.problem).steps) {
      key += std::get<strategies::KernelLaunch>(step).expression + " ";
    }
    return key + std::string(thresher::name(task_.problem.a)) + std::string(thresher::name(task_.problem.layout));
  }
  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const auto& task = problem.as<GroupedTask>();
    const GroupedProblem& p = task.problem;
    if (task.is_dense) {
      return fmt::format("{} --strategy {} --knobs \"{}\" --device {} --a {} --b {} --out {} --m {} --n {} --k {}",
                         problem.operation().name(), strategy_.name(), knobs_.text(), device_.name, thresher::name(p.a),
                         thresher::name(p.b), thresher::name(p.out), p.rows, p.n, p.k);
    }
    return fmt::format(
        "{} --strategy {} --knobs \"{}\" --device {} --a {} --b {} --out {} --layout {} --experts {} --rows {} --n {} "
        "--k {}",
        problem.operation().name(), strategy_.name(), knobs_.text(), device_.name, thresher::name(p.a),
        thresher::name(p.b), thresher::name(p.out), thresher::name(p.layout), p.experts,
        task.counts.empty() ? 0 : task.counts.front(), p.n, p.k);
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> all;
    for (const strategies::gemm::ProductProblem& edge : strategy_.edges(task_.problem, knobs_, device_)) {
      all.push_back(problem_of(task_.is_dense ? dense(edge) : ragged(edge, task_.order)));
    }
    return all;
  }

  void check(const Problem& wanted) const override { (void)taken(wanted); }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const GroupedTask task = taken(wanted);
    return run_of(call(task.problem), task);
  }

 private:
  /// The wanted shape and counts in this kernel's formats.
  [[nodiscard]] GroupedTask taken(const Problem& wanted) const {
    GroupedTask task = wanted.as<GroupedTask>();
    const GroupedProblem& own = task_.problem;
    task.problem.a = own.a;
    task.problem.b = own.b;
    task.problem.out = own.out;
    task.problem.activation = own.activation;
    task.problem.bias = own.bias;
    task.problem.row_weights = own.row_weights;
    task.problem.layout = own.layout;
    task.order = task_.order;
    task.is_dense = task_.is_dense;
    if (task.problem.layout == RowLayout::gathered && task.problem.tokens == 0) {
      task.problem.tokens = task.owned_rows();
    }
    task = completed(std::move(task));
    const int multiple = std::max(format_traits(own.a).k_multiple, format_traits(own.b).k_multiple);
    if (task.problem.n < 1 || task.problem.k < multiple || task.problem.k % multiple != 0) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} cannot be emulated: n is at least 1, k is a multiple of {}", label_of(task), multiple));
    }
    return task;
  }
  [[nodiscard]] PlannedCall call(const GroupedProblem& problem) const {
    PlannedCall planned = strategy_.plan(problem, knobs_, device_);
    return task_.is_dense ? tensors::without_offsets(std::move(planned)) : planned;
  }

  const Strategy& strategy_;
  GroupedTask task_;
  Knobs knobs_;
  DeviceSpec device_;
};

class GroupedEmulation final : public EmulatedOperation {
 public:
  explicit GroupedEmulation(GroupedKind kind) : kind_(kind) {}

  [[nodiscard]] std::vector<std::string> strategies() const override {
    std::vector<std::string> names;
    for (const Strategy* strategy :
         strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda)) {
      if (!samples(std::string(strategy->name()), nullptr).empty()) {
        names.emplace_back(strategy->name());
      }
    }
    return names;
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const auto& task = problem.as<GroupedTask>();
    const GroupedOptions options{.strategy = request.strategy, .knobs = Knobs::parse(request.knobs)};
    const PlannedCall call = ops::planned_call(task.problem, options, device);
    if (!only_launches(call)) {
      return {nullptr, "its products are a library's kernels (cuBLASLt), not Thresher's"};
    }
    return {std::make_shared<const PlannedKernel>(named(call.strategy), task, call.knobs, device), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& wanted, const DeviceSpec* wanted_card) const override {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    const Strategy& strategy = named(wanted);
    for (const auto& sample : strategies::gemm::dense_or_not(strategy.samples(), false)) {
      const DeviceSpec* const card = card_for(strategy, sample.problem, wanted_card);
      if (card != nullptr && is_of_kind(sample.problem)) {
        GroupedTask task = kind_ == GroupedKind::dense ? dense(sample.problem) : ragged(sample.problem, std::nullopt);
        found.push_back(std::make_shared<const PlannedKernel>(strategy, std::move(task), sample.knobs, *card));
      }
    }
    return found;
  }

 private:
  static const Strategy& named(const std::string& name) {
    return *strategies::find_strategy<strategies::gemm::ProductProblem>(
        strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda), name);
  }

  [[nodiscard]] bool is_of_kind(const GroupedProblem& problem) const {
    return kind_ == GroupedKind::dense ? may_be_dense(problem)
                                       : problem.activation.has_value() == (kind_ == GroupedKind::dual);
  }

  GroupedKind kind_;
};

}  // namespace

const EmulatedOperation* GroupedOperation::emulated() const {
  static const GroupedEmulation dual(GroupedKind::dual);
  static const GroupedEmulation plain(GroupedKind::plain);
  static const GroupedEmulation dense_ones(GroupedKind::dense);
  const GroupedEmulation& kernels = is_dual() ? dual : is_dense() ? dense_ones : plain;
  return kernels.strategies().empty() ? nullptr : &kernels;
}

}  // namespace thresher::arena
