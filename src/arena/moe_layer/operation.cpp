// The layer of experts and the gated MLP in the arena, which are operations of one class.
#include <algorithm>

#include "arena/moe_layer/calls.hpp"
#include "arena/moe_layer/fields.hpp"
#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/judge.hpp"
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/parts.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/operation/planned_runner.hpp"
#include "arena/operation/task_bytes.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/layer_parts.hpp"
#include "ops/product_choice.hpp"
#include "strategies/gemm/registry.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;
using strategies::gemm::ProductProblem;

/// Problems are not made smaller than this along any side.
constexpr std::int64_t min_extent = 64;
/// A multiple of this suits every format's rows and scales.
constexpr std::int64_t extent_step = 32;

double as_double(std::int64_t value) { return static_cast<double>(value); }

double bytes_per_element(Format format, OperandRole role) { return format_traits(format).stored_bits(role) / 8; }

double weight_bytes(const MoeProblem& p, std::int64_t experts) {
  const double matrix = as_double(experts) * as_double(p.hidden_size) * as_double(p.intermediate_size);
  return matrix *
         (2 * bytes_per_element(p.gate_up, OperandRole::weights) + bytes_per_element(p.down, OperandRole::weights));
}

const LayerTask& layer_task(const Problem& problem) { return problem.as<LayerTask>(); }

/// Intermediates that share scales stay whole.
std::int64_t intermediate_step(const MoeProblem& p) {
  return std::max<std::int64_t>(extent_step, format_traits(p.intermediate).n_multiple);
}

/// Throws Error(invalid_argument) for an unknown strategy, knob or value. A product that is left to `plan` has none.
void check_product(const char* title, const ProductProblem& problem, const DualGemmOptions& options, DeviceKind kind,
                   const DeviceSpec& device) {
  const auto all = strategies::gemm::strategies_of(strategies::gemm::product_of(problem), kind);
  ops::of_product(title, [&] {
    if (options.strategy.empty()) {
      (void)planner::choose(all, problem, ops::request_of(options), device);
    } else {
      (void)planner::named_strategy(all, options.strategy)
          .infeasible_reasons(problem, ops::request_of(options).knobs, device);
    }
  });
}

/// The same of both products, whether or not they take the layer's formats.
void check_products(const LayerTask& task, const MoeOptions& options, DeviceKind kind, const DeviceSpec& device) {
  const LayerProducts products = products_of(task);
  check_product("gate_up", products.gate_up, options.gate_up, kind, device);
  check_product("down", products.down, options.down, kind, device);
}

class LayerOperation final : public Operation {
 public:
  /// A gated MLP is dense.
  explicit LayerOperation(bool is_dense) : is_dense_(is_dense) {}

  // Its problems.
  [[nodiscard]] std::string_view name() const override { return is_dense_ ? "gated_mlp" : "moe_layer"; }
  void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const override {
    add_layer_problems(is_dense_, tables, problems);
  }
  [[nodiscard]] Problem example() const override { return problem_of(layer_example(is_dense_)); }
  [[nodiscard]] std::vector<ProblemOption> options() const override {
    return options_of<LayerTask>(layer_fields(is_dense_), completed, fitted);
  }

  [[nodiscard]] std::string label(const Problem& problem) const override { return label_of(layer_task(problem)); }

  [[nodiscard]] Cost cost(const Problem& problem) const override {
    const LayerTask& task = layer_task(problem);
    const MoeProblem& p = task.problem;
    constexpr double bytes_of_a_choice = 8;  // an id and a weight
    const ChoiceCounts counts = choice_counts(task);
    const double in = as_double(counts.active_tokens * p.hidden_size) * bytes_per_element(p.x, OperandRole::tokens);
    const double out = as_double(p.tokens * p.hidden_size) * bytes_per_element(p.out, OperandRole::tokens);
    const double router = task.is_dense ? 0 : as_double(task.choices()) * bytes_of_a_choice;
    return {6 * as_double(counts.rows) * as_double(p.intermediate_size) * as_double(p.hidden_size),
            in + router + weight_bytes(p, counts.active_experts) + out};
  }

  /// Packed weights, and the tensors between the launches.
  [[nodiscard]] double working_bytes(const Problem& problem) const override {
    const LayerTask& task = layer_task(problem);
    const MoeProblem& p = task.problem;
    const double hidden = as_double(p.intermediate_size) * bytes_per_element(p.intermediate, OperandRole::tokens);
    const double row = task.is_dense ? 0 : as_double(p.hidden_size) * bytes_per_element(p.rows, OperandRole::tokens);
    return weight_bytes(p, p.experts) + as_double(task.choices()) * (hidden + row);
  }

  [[nodiscard]] std::optional<Problem> neighbour(const Problem& problem) const override {
    LayerTask near = layer_task(problem);
    near.problem.tokens += 3;
    near.problem.hidden_size += extent_step;
    near.problem.intermediate_size += intermediate_step(near.problem);
    if (!is_dense_) {
      near.problem.experts += 1;
      near.total_experts += 1;
    }
    return problem_of(std::move(near));
  }

  [[nodiscard]] std::optional<Problem> smaller(const Problem& problem) const override {
    LayerTask half = layer_task(problem);
    MoeProblem& p = half.problem;
    const std::int64_t step = intermediate_step(p);
    const auto halved = [](std::int64_t extent, std::int64_t of) { return extent / 2 / of * of; };
    if (p.tokens >= 2 * min_extent && p.tokens >= std::max(p.hidden_size, p.intermediate_size)) {
      p.tokens = (p.tokens + 1) / 2;
    } else if (p.intermediate_size >= std::max(p.hidden_size, 2 * std::max(min_extent, step))) {
      p.intermediate_size = halved(p.intermediate_size, step);
    } else if (p.hidden_size >= 2 * min_extent) {
      p.hidden_size = halved(p.hidden_size, extent_step);
    } else if (p.tokens >= 2 * min_extent) {
      p.tokens = (p.tokens + 1) / 2;
    } else if (p.experts >= 4 && half.total_experts / 2 >= p.top_k) {
      p.experts /= 2;
      half.total_experts /= 2;
    } else {
      return std::nullopt;
    }
    return problem_of(std::move(half));
  }

  // Its data.
  /// Nothing is exact from end to end: what is rounded between the products is not what the definition adds up.
  [[nodiscard]] bool offers(const Problem&, Distribution distribution) const override {
    return distribution != Distribution::integers;
  }

  [[nodiscard]] std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const override {
    return layer_inputs(layer_task(problem), distribution, seed);
  }

  [[nodiscard]] std::vector<HostTensor> outputs(const Problem& problem) const override {
    return layer_outputs_of(layer_task(problem));
  }

  [[nodiscard]] std::unique_ptr<Judge> judge(const Problem& problem, Distribution,
                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                             std::uint64_t seed) const override {
    return make_layer_judge(layer_task(problem), inputs, maker, seed);
  }

  [[nodiscard]] std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const override {
    return make_layer_inspector(layer_task(problem), distribution, inputs, maker, seed);
  }

  /// Weights of other experts, and tokens and router's weights with other signs: the choices stay.
  [[nodiscard]] std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                  std::size_t index) const override {
    std::vector<HostTensor> varied;
    Random random(derive_seed(index, "variation"));
    std::int64_t step = 1;
    for (const HostTensor& input : inputs) {
      varied.push_back(input.is_weight ? rotate_rows(input, static_cast<std::int64_t>(index) * step) : input);
      if (!input.is_weight || is_dense_) {
        flip_signs(varied.back(), random);
      }
      step += 2;
    }
    return varied;
  }

  [[nodiscard]] std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                    std::uint64_t seed) const override {
    return layer_activations(layer_task(problem), distribution, seed);
  }

  [[nodiscard]] std::optional<std::vector<HostTensor>> rearranged(const Problem& problem, Distribution distribution,
                                                                  std::uint64_t change,
                                                                  std::uint64_t seed) const override {
    if (is_dense_) {
      return std::nullopt;  // there is nothing that a kernel could have remembered
    }
    const LayerTask& task = layer_task(problem);
    return layer_activations(task, other_choices(task, change, seed), distribution, derive_seed(seed, "rearranged"));
  }

  [[nodiscard]] bool uses_every_element(const Problem& problem) const override {
    const LayerTask& task = layer_task(problem);
    const ChoiceCounts counts = choice_counts(task);
    return !format_traits(task.problem.intermediate).is_quantized_output() && counts.rows == task.choices() &&
           counts.active_experts == task.problem.experts;
  }

  // Its strategies.
  [[nodiscard]] std::vector<std::string> contestants(DeviceKind kind) const override {
    // The baseline comes first, as it does among the products.
    std::vector<std::string> known = is_dense_
                                         ? dual_gemm_operation().contestants(kind)
                                         : strategy_names(strategies::gemm::strategies_of(Product::grouped, kind));
    known.emplace_back(planned_layer);
    return known;
  }

  void check(const ContestantSpec& spec, const Device& device) const override {
    require_known(spec, device, contestants(device.kind()));
    check_products(layer_example(is_dense_), layer_options(spec), device.kind(), ops::spec_of(device));
  }

  [[nodiscard]] std::string unsupported_reason(const Problem& problem, const ContestantSpec& spec,
                                               const Device& device) const override {
    return unsupported_layer(products_of(layer_task(problem)), layer_options(spec), device.kind(),
                             ops::spec_of(device));
  }

  [[nodiscard]] std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                     const Device& device) const override {
    return layer_obstacle(products_of(layer_task(problem)), layer_options(spec), device);
  }

  [[nodiscard]] PlanRequest plan_request(const ContestantSpec& spec) const override {
    return request_of(layer_options(spec));
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                         const DeviceSpec& device) const override {
    const LayerCalls calls = calls_of(layer_task(problem), layer_options(spec), device);
    MachineCode code;
    // The products first, which people look for.
    std::vector<const strategies::PlannedCall*> all = calls.in_order();
    std::stable_partition(all.begin(), all.end(),
                          [&](const auto* call) { return call == &calls.gate_up || call == &calls.down; });
    for (const strategies::PlannedCall* const call : all) {
      MachineCode of_call = machine_code_of(*call, std::string(thresher::name(device.arch)));
      std::move(of_call.kernels.begin(), of_call.kernels.end(), std::back_inserter(code.kernels));
      code.not_judged = code.not_judged.empty() ? of_call.not_judged : code.not_judged;
    }
    return code;
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const LayerTask& task = layer_task(problem);
    const MoeOptions options = layer_options(spec);
    if (task.is_dense) {
      return make_planned_runner(
          memory, sets, "down.b1",
          [&](const FindTensor& find) {
            return plan(device, gated_mlp_of(task), gated_mlp_weights(find), gated_mlp_options(options));
          },
          [](const FindTensor& find) { return MatrixCall{find("x"), find("out")}; });
    }
    return make_planned_runner(
        memory, sets, "down.b1",
        [&](const FindTensor& find) {
          return plan(device, task.problem, gate_up_weights(task, find), down_weights(task, find), options);
        },
        layer_tensors);
  }

  [[nodiscard]] PlannerResult outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                      const planner::Calibration& calibration) const override {
    const LayerTask& task = layer_task(problem);
    const MoeOptions options = layer_options(spec);
    try {
      check_products(task, options, DeviceKind::cuda, device);
      if (std::string obstacle = unsupported_layer(products_of(task), options, DeviceKind::cuda, device);
          !obstacle.empty()) {
        return {.infeasible_reasons = {std::move(obstacle)}, .is_for_other_formats = true};
      }
      const LayerCalls calls = calls_of(task, options, device);
      PlannerResult outlook{.prediction = forecast(calls, device, calibration)};
      for (const strategies::PlannedCall* const call : calls.in_order()) {
        outlook.work.parts.insert(outlook.work.parts.end(), call->work.parts.begin(), call->work.parts.end());
      }
      return outlook;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_argument) {
        throw;  // a strategy, a knob or a value that there is not
      }
      return {.infeasible_reasons = {error.what()}};
    }
  }

  [[nodiscard]] const EmulatedOperation* emulated() const override { return layer_emulation(is_dense_); }

  [[nodiscard]] std::vector<Argument> arguments(const Problem& problem, const FindTensor& find) const override {
    return layer_arguments(layer_task(problem), find);
  }
  [[nodiscard]] std::string formats_text(const Problem& problem) const override {
    return layer_formats(layer_task(problem));
  }
  [[nodiscard]] std::string bytes(const Problem& problem) const override { return bytes_of(layer_task(problem)); }
  [[nodiscard]] Problem from_bytes(std::string_view bytes) const override {
    return problem_of(task_from<LayerTask>(bytes));
  }

 private:
  bool is_dense_;
};

}  // namespace

const Operation& moe_layer_operation() {
  static const LayerOperation operation(false);
  return operation;
}

const Operation& gated_mlp_operation() {
  static const LayerOperation operation(true);
  return operation;
}

}  // namespace thresher::arena
