// The kernels of layers in the emulator.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arena/emulation/card_for.hpp"
#include "arena/emulation/emulation.hpp"
#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/emulated_run.hpp"
#include "arena/moe_layer/operation.hpp"
#include "arena/moe_layer/options.hpp"
#include "core/integers.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::PlannedCall;
using GroupedSample = strategies::Sample<strategies::gemm::ProductProblem>;

constexpr std::int64_t max_emulated_choices = 1 << 16;

bool only_launches(const PlannedCall& call) {
  return std::all_of(call.steps.begin(), call.steps.end(), [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  });
}

/// The extents and choices of `shape` for what else `of` is.
LayerTask shaped(const LayerTask& of, const LayerTask& shape) {
  LayerTask task = of;
  MoeProblem& p = task.problem;
  p.experts = shape.problem.experts;
  p.tokens = shape.problem.tokens;
  p.top_k = shape.problem.top_k;
  p.hidden_size = shape.problem.hidden_size;
  p.intermediate_size = shape.problem.intermediate_size;
  task.routing = shape.routing;
  task.total_experts = shape.total_experts;
  task.skipped = shape.skipped;
  task.repeated = shape.repeated;
  return completed(std::move(task));
}

/// Of a small problem around a strategy's tile.
struct Extents {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

template <class Problem>
std::vector<Extents> edges_of(strategies::Strategies<Problem> all, const DualGemmOptions& options,
                              const std::type_identity_t<Problem>& problem, const DeviceSpec& device) {
  std::vector<Extents> found;
  const auto* const strategy = strategies::find_strategy<Problem>(all, options.strategy);
  for (const Problem& edge : strategy->edges(problem, options.knobs, device)) {
    found.push_back({edge.rows, edge.n, edge.k});
  }
  return found;
}

/// What `plan` launches with these strategies and knobs of the products.
class LayerKernel final : public EmulatedKernel {
 public:
  LayerKernel(const LayerTask& task, MoeOptions options, const DeviceSpec& device)
      : task_(task), options_(std::move(options)), device_(device) {}

  [[nodiscard]] std::string title() const override {
    return fmt::format("{} of gate_up {} ({}) and down {} ({})", operation().name(), options_.gate_up.strategy,
                       options_.gate_up.knobs.text(), options_.down.strategy, options_.down.knobs.text());
  }

  [[nodiscard]] std::string key() const override {
    const ops::LayerCalls calls = calls_of(task_, options_, device_);
    std::string key{operation().name()};
    for (const PlannedCall* const call : calls.in_order()) {
      for (const strategies::Step& step : call->steps) {
        key += " " + std::get<strategies::KernelLaunch>(step).expression;
      }
    }
    return fmt::format("{} {} {}", key, name(task_.problem.x), name(task_.problem.intermediate));
  }

  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const auto& task = problem.as<LayerTask>();
    const MoeProblem& p = task.problem;
    const PlanRequest request = request_of(options_);
    std::string text = fmt::format(
        "{} --strategy {} --knobs \"{}\" --device {} --x {} --gate-up {} --intermediate {} --down {} --out {} "
        "--activation {} --tokens {} --hidden-size {} --intermediate-size {}",
        problem.operation().name(), request.strategy, request.knobs, device_.name, name(p.x), name(p.gate_up),
        name(p.intermediate), name(p.down), name(p.out), name(p.activation.kind), p.tokens, p.hidden_size,
        p.intermediate_size);
    if (!task.is_dense) {
      text += fmt::format(" --experts {} --of-experts {} --top-k {}", p.experts, task.total_experts, p.top_k);
    }
    return text;
  }

  /// Beyond a tile and beyond the ring of both products; far less than one tile; and of experts more choices than one
  /// block sorts, most of them of experts that are somewhere else.
  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> all;
    const std::vector<Extents> gate_up = edges_of_gate_up();
    const std::vector<Extents> down = edges_of_down();
    LayerTask shape = operation().example().as<LayerTask>();
    for (std::size_t i = 0; i < std::min(gate_up.size(), down.size()); ++i) {
      shape.problem.hidden_size = gate_up[i].k;
      shape.problem.intermediate_size = std::max(gate_up[i].n, down[i].k);
      shape.problem.tokens = ceil_div(gate_up[i].rows, shape.problem.top_k);
      shape = fitted(shaped(task_, shape));
      all.push_back(problem_of(shape));
    }
    if (!task_.is_dense) {
      shape.problem.tokens = 2055;
      shape.problem.top_k = 2;
      shape.total_experts = 512;
      all.push_back(problem_of(shaped(task_, shape)));
    }
    return all;
  }

  void check(const Problem& wanted) const override { (void)calls_of(taken(wanted), options_, device_); }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const LayerTask task = taken(wanted);
    return emulated_layer(task, calls_of(task, options_, device_));
  }

 private:
  /// The wanted shape and choices in this kernel's formats.
  [[nodiscard]] LayerTask taken(const Problem& wanted) const {
    const LayerTask task = shaped(task_, wanted.as<LayerTask>());
    const auto [hidden, intermediate] = multiples_of(task.problem);
    if (task.problem.hidden_size % hidden != 0 || task.problem.intermediate_size % intermediate != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: the hidden size is a multiple of {}, the intermediate size of {}",
                              label_of(task), hidden, intermediate));
    }
    if (const std::string obstacle = choices_obstacle(task); !obstacle.empty()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} cannot be emulated: {}", label_of(task), obstacle));
    }
    if (task.choices() > max_emulated_choices) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: it has {} choices, expected at most {}", label_of(task),
                              task.choices(), max_emulated_choices));
    }
    return task;
  }
  [[nodiscard]] const Operation& operation() const {
    return task_.is_dense ? gated_mlp_operation() : moe_layer_operation();
  }

  [[nodiscard]] std::vector<Extents> edges_of_gate_up() const {
    return task_.is_dense
               ? edges_of(strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda),
                          options_.gate_up, ops::gate_up_problem(gated_mlp_of(task_)), device_)
               : edges_of(strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda),
                          options_.gate_up, gate_up_problem(task_.problem), device_);
  }
  [[nodiscard]] std::vector<Extents> edges_of_down() const {
    return edges_of(strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda),
                    options_.down, down_problem(task_.problem), device_);
  }

  LayerTask task_;
  MoeOptions options_;  ///< every strategy and every knob
  DeviceSpec device_;
};

/// A sample of down that takes what a sample of gate and up leaves: of the same strategy where that has one.
struct DownSample {
  std::string strategy;
  GroupedSample sample;
};
std::optional<DownSample> down_behind(Format intermediate, const std::string& strategy, const DeviceSpec& card) {
  std::optional<DownSample> found;
  for (const auto* of : strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda)) {
    for (const GroupedSample& sample : of->samples()) {
      const GroupedProblem p = sample.problem;
      const bool fits = !p.activation && !p.row_weights && p.layout == RowLayout::packed && p.a == intermediate &&
                        format_traits(p.out).is_unscaled_output() && !of->unsupported_reason(p, card);
      if (fits && (!found || (found->strategy != strategy && of->name() == strategy))) {
        found = DownSample{std::string(of->name()), sample};
      }
    }
  }
  return found;
}

std::shared_ptr<const EmulatedKernel> pinned(LayerTask task, const std::string& gate_up_strategy,
                                             const Knobs& gate_up_knobs, const DownSample& down,
                                             const DeviceSpec& card) {
  task.problem.down = down.sample.problem.b;
  task.problem.rows = down.sample.problem.out;
  task.problem.out = down.sample.problem.out;
  task.problem.down_bias = down.sample.problem.bias;
  return std::make_shared<const LayerKernel>(
      task,
      MoeOptions{.gate_up = {.strategy = gate_up_strategy, .knobs = gate_up_knobs},
                 .down = {.strategy = down.strategy, .knobs = down.sample.knobs}},
      card);
}

class LayerEmulation final : public EmulatedOperation {
 public:
  explicit LayerEmulation(bool is_dense) : is_dense_(is_dense) {}

  [[nodiscard]] std::vector<std::string> strategies() const override {
    std::vector<std::string> names;
    const auto add = [&](const auto& all) {
      for (const auto* strategy : all) {
        if (!samples(std::string(strategy->name()), nullptr).empty()) {
          names.emplace_back(strategy->name());
        }
      }
    };
    if (is_dense_) {
      add(strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda));
    } else {
      add(strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda));
    }
    return names;
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const auto& task = problem.as<LayerTask>();
    const ops::LayerCalls calls = calls_of(task, layer_options(request), device);
    if (!only_launches(calls.gate_up) || !only_launches(calls.down)) {
      return {nullptr, "its products are a library's kernels (cuBLASLt), not Thresher's"};
    }
    const MoeOptions options{.gate_up = {.strategy = calls.gate_up.strategy, .knobs = calls.gate_up.knobs},
                             .down = {.strategy = calls.down.strategy, .knobs = calls.down.knobs}};
    return {std::make_shared<const LayerKernel>(task, options, device), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& wanted, const DeviceSpec* wanted_card) const override {
    return is_dense_
               ? samples_of(*strategies::find_strategy<strategies::gemm::ProductProblem>(
                                strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda),
                                wanted),
                            wanted_card)
               : samples_of(
                     *strategies::find_strategy<strategies::gemm::ProductProblem>(
                         strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda), wanted),
                     wanted_card);
  }

 private:
  static bool is_gate_up(const strategies::gemm::ProductProblem& p) {
    return p.is_dense() || (p.activation && !p.row_weights && p.layout == strategies::gemm::ProductRows::gathered);
  }

  static LayerTask task_of(const strategies::gemm::ProductProblem& p) {
    if (p.is_dense()) {
      return gated_mlp_task({.x = p.a, .gate_up = p.b, .intermediate = p.out, .activation = *p.activation});
    }
    LayerTask task;
    task.problem.x = p.a;
    task.problem.gate_up = p.b;
    task.problem.intermediate = p.out;
    task.problem.activation = *p.activation;
    task.problem.gate_up_bias = p.bias;
    return task;
  }

  /// One for each format of the intermediate.
  template <class Problem>
  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples_of(
      const strategies::Strategy<Problem>& strategy, const DeviceSpec* wanted_card) const {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    std::vector<Format> intermediates;
    const std::string name(strategy.name());
    for (const auto& sample : strategies::gemm::dense_or_not(strategy.samples(), is_dense_)) {
      const Format intermediate = sample.problem.out;
      const DeviceSpec* const card = card_for(strategy, sample.problem, wanted_card);
      const bool is_there = std::find(intermediates.begin(), intermediates.end(), intermediate) != intermediates.end();
      if (card == nullptr || is_there || !is_gate_up(sample.problem)) {
        continue;
      }
      if (const auto down = down_behind(intermediate, name, *card)) {
        intermediates.push_back(intermediate);
        found.push_back(pinned(task_of(sample.problem), name, sample.knobs, *down, *card));
      }
    }
    return found;
  }

  bool is_dense_;
};

}  // namespace

const EmulatedOperation* LayerOperation::emulated() const {
  static const LayerEmulation total_experts(false);
  static const LayerEmulation dense(true);
  return is_dense_ ? &dense : &total_experts;
}

}  // namespace thresher::arena
