// The kernels of layers in the emulator.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "arena/emulation/card_for.hpp"
#include "arena/emulation/planned_run.hpp"
#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/emulated_run.hpp"
#include "arena/moe_layer/fields.hpp"
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/parts.hpp"
#include "core/integers.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::PlannedCall;
using strategies::gemm::Product;
using strategies::gemm::ProductProblem;
using ProductSample = strategies::Sample<ProductProblem>;

constexpr std::int64_t max_emulated_choices = 1 << 16;

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

/// Small problems around the tile of the strategy that computes `problem`.
std::vector<ProductProblem> edges_of(Product product, const ProductProblem& problem, const DualGemmOptions& options,
                                     const DeviceSpec& device) {
  const auto all = strategies::gemm::strategies_of(product, DeviceKind::cuda);
  return strategies::find_strategy(all, options.strategy)->edges(problem, options.knobs, device);
}

/// The launches of a layer with these strategies and knobs of the products.
class LayerKernel final : public EmulatedKernel {
 public:
  LayerKernel(const LayerTask& task, MoeOptions options, const DeviceSpec& device)
      : task_(task), options_(std::move(options)), device_(device) {}

  [[nodiscard]] std::string title() const override {
    return fmt::format("{} of gate_up {} ({}) and down {} ({})", operation().name(), options_.gate_up.strategy,
                       options_.gate_up.knobs.text(), options_.down.strategy, options_.down.knobs.text());
  }

  [[nodiscard]] std::string key() const override {
    const LayerCalls calls = calls_of(task_, options_, device_);
    std::string key{operation().name()};
    for (const PlannedCall* const call : calls.in_order()) {
      key += kernel_expressions(*call);
    }
    return fmt::format("{} {} {}", key, name(task_.problem.x), name(task_.problem.intermediate));
  }

  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const auto& task = problem.as<LayerTask>();
    const PlanRequest request = request_of(options_);
    return fmt::format("{} --strategy {} --knobs \"{}\" --device {}{}", problem.operation().name(), request.strategy,
                       request.knobs, device_.name, arguments_of(layer_fields(task.is_dense), task));
  }

  /// Beyond a tile and beyond the ring of both products; far less than one tile; and of experts more choices than one
  /// block sorts, most of them of experts that are somewhere else.
  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> all;
    const std::vector<ProductProblem> gate_up = edges_of_gate_up();
    const std::vector<ProductProblem> down =
        edges_of(Product::grouped, down_problem(task_.problem), options_.down, device_);
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

  [[nodiscard]] std::vector<ProductProblem> edges_of_gate_up() const {
    return task_.is_dense
               ? edges_of(Product::dual_gemm, ops::gate_up_problem(gated_mlp_of(task_)), options_.gate_up, device_)
               : edges_of(Product::grouped, gate_up_problem(task_.problem), options_.gate_up, device_);
  }

  LayerTask task_;
  MoeOptions options_;  ///< every strategy and every knob
  DeviceSpec device_;
};

/// A sample of down that takes what a sample of gate and up leaves: of the same strategy where that has one. A gated
/// MLP has no bias.
struct DownSample {
  std::string strategy;
  ProductSample sample;
};
std::optional<DownSample> down_behind(const ProductProblem& gate_up, const std::string& strategy,
                                      const DeviceSpec& card) {
  std::optional<DownSample> found;
  for (const auto* of : strategies::gemm::strategies_of(Product::grouped, DeviceKind::cuda)) {
    for (const ProductSample& sample : of->samples()) {
      const GroupedProblem p = sample.problem.grouped();
      const bool fits = !p.activation && !p.row_weights && p.layout == RowLayout::packed && p.a == gate_up.out &&
                        (gate_up.is_dense() ? !p.bias : !sample.problem.is_dense()) &&
                        format_traits(p.out).is_unscaled_output() && !of->unsupported_reason(p, card);
      if (fits && (!found || (found->strategy != strategy && of->name() == strategy))) {
        found = DownSample{std::string(of->name()), sample};
      }
    }
  }
  return found;
}

/// The layer that a sample of gate and up and one of down make.
LayerTask layer_around(const ProductProblem& gate_up, const ProductProblem& down) {
  LayerTask task = gate_up.is_dense() ? gated_mlp_task({}) : LayerTask{};
  MoeProblem& p = task.problem;
  p.x = gate_up.a;
  p.gate_up = gate_up.b;
  p.intermediate = gate_up.out;
  p.activation = *gate_up.activation;
  p.gate_up_bias = gate_up.bias;
  p.down = down.b;
  p.rows = p.out = down.out;
  p.down_bias = down.bias;
  return task;
}

class LayerEmulation final : public EmulatedOperation {
 public:
  explicit LayerEmulation(bool is_dense) : is_dense_(is_dense) {}

  [[nodiscard]] std::vector<std::string> strategies() const override {
    std::vector<std::string> names = strategy_names(all());
    std::erase_if(names, [&](const std::string& name) { return samples(name, nullptr).empty(); });
    return names;
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const auto& task = problem.as<LayerTask>();
    const LayerCalls calls = calls_of(task, layer_options(request), device);
    if (!only_launches(calls.gate_up) || !only_launches(calls.down)) {
      return {nullptr, library_kernels};
    }
    const MoeOptions options{.gate_up = {.strategy = calls.gate_up.strategy, .knobs = calls.gate_up.knobs},
                             .down = {.strategy = calls.down.strategy, .knobs = calls.down.knobs}};
    return {std::make_shared<const LayerKernel>(task, options, device), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& wanted, const DeviceSpec* wanted_card) const override {
    const auto& strategy = *strategies::find_strategy(all(), wanted);
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    std::vector<Format> intermediates;  // a sample is enough for each
    using strategies::gemm::Product;
    const Product product = is_dense_ ? Product::dual_gemm : Product::grouped;
    for (const ProductSample& sample : strategies::gemm::of_product(strategy.samples(), product)) {
      const Format intermediate = sample.problem.out;
      const DeviceSpec* const card = card_for(strategy, sample.problem, wanted_card);
      const bool is_there = std::find(intermediates.begin(), intermediates.end(), intermediate) != intermediates.end();
      if (card == nullptr || is_there || !is_gate_up(sample.problem)) {
        continue;
      }
      if (const auto down = down_behind(sample.problem, wanted, *card)) {
        intermediates.push_back(intermediate);
        found.push_back(std::make_shared<const LayerKernel>(
            layer_around(sample.problem, down->sample.problem),
            MoeOptions{.gate_up = {.strategy = wanted, .knobs = sample.knobs},
                       .down = {.strategy = down->strategy, .knobs = down->sample.knobs}},
            *card));
      }
    }
    return found;
  }

 private:
  /// Those of gate and up.
  [[nodiscard]] strategies::Strategies<ProductProblem> all() const {
    return strategies::gemm::strategies_of(is_dense_ ? Product::dual_gemm : Product::grouped, DeviceKind::cuda);
  }

  static bool is_gate_up(const ProductProblem& p) {
    const bool is_gathered = p.layout == strategies::gemm::ProductRows::gathered;
    return p.matrices() == 2 && (p.is_dense() || (is_gathered && !p.row_weights));
  }

  bool is_dense_;
};

}  // namespace

const EmulatedOperation* layer_emulation(bool is_dense) {
  static const LayerEmulation total_experts(false);
  static const LayerEmulation dense(true);
  return is_dense ? &dense : &total_experts;
}

}  // namespace thresher::arena
