#include "ops/layer_calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/forecast.hpp"
#include "ops/layer_parts.hpp"
#include "ops/product_choice.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using planner::Prediction;
using strategies::PlannedCall;

constexpr const char* of_gate_up = "gate_up";
constexpr const char* of_down = "down";

std::string about(const char* product, const std::string& sentence) {
  return sentence.empty() ? "" : fmt::format("{}: {}", product, sentence);
}

/// The first that is not empty.
std::string first_of(std::string one, const auto& other) { return one.empty() ? other() : one; }

/// Where the choice is left to `plan`: why no strategy is made for it.
std::string format_obstacle_of(const char* product, DeviceKind kind, const ProductProblem& problem,
                               const DualGemmOptions& options, const DeviceSpec& device) {
  if (!options.strategy.empty()) {
    return of_product(product, [&] { return about(product, format_obstacle(kind, device, problem, options)); });
  }
  const auto all = strategies::gemm::strategies_of(strategies::gemm::product_of(problem), kind);
  const bool is_taken =
      std::any_of(all.begin(), all.end(), [&](const auto* one) { return !one->unsupported_reason(problem, device); });
  return is_taken ? ""
                  : fmt::format("{}: no strategy is made for {} with {} to {} on {}", product, name(problem.a),
                                name(problem.b), name(problem.out), device.name);
}

/// The products of a layer.
struct Products {
  ProductProblem gate_up;
  ProductProblem down;
};
Products products_of(const MoeProblem& problem) {
  return {thresher::gate_up_problem(problem), thresher::down_problem(problem)};
}
Products products_of(const GatedMlpProblem& problem) { return {gate_up_problem(problem), down_problem(problem)}; }

template <class Options>
std::string format_obstacle_of(const Products& products, DeviceKind kind, const DeviceSpec& device,
                               const Options& options) {
  return first_of(format_obstacle_of(of_gate_up, kind, products.gate_up, options.gate_up, device),
                  [&] { return format_obstacle_of(of_down, kind, products.down, options.down, device); });
}

template <class Options>
std::string obstacle_of(const Products& products, const Device& device, const Options& options) {
  return first_of(about(of_gate_up, product_obstacle(device, products.gate_up, options.gate_up)),
                  [&] { return about(of_down, product_obstacle(device, products.down, options.down)); });
}

template <class Options>
LayerCalls calls_of(const Products& products, const Options& options, const DeviceSpec& device) {
  return {.gate_up = of_product(of_gate_up, [&] { return planned_call(products.gate_up, options.gate_up, device); }),
          .down = of_product(of_down, [&] { return planned_call(products.down, options.down, device); })};
}

/// The prediction of a product with the passes over memory that belong to it.
Prediction of_part(const char* product, const PlannedCall& call, const std::optional<PlannedCall>& beside,
                   const DeviceSpec& device, const planner::Calibration& calibration) {
  return of_product(product, [&] {
    PlannedCall with_passes = call;
    if (beside && !call.work.parts.empty()) {
      with_passes.work.parts.insert(with_passes.work.parts.end(), beside->work.parts.begin(), beside->work.parts.end());
    }
    return forecast(with_passes, device, calibration);
  });
}

planner::TimeParts added(planner::TimeParts one, const planner::TimeParts& other) {
  one.launch_us += other.launch_us;
  one.fill_us += other.fill_us;
  one.main_us += other.main_us;
  one.exchange_us += other.exchange_us;
  one.epilogue_us += other.epilogue_us;
  one.passes_us += other.passes_us;
  return one;
}

}  // namespace

DualGemmProblem gate_up_problem(const GatedMlpProblem& problem) noexcept {
  return {.m = problem.tokens,
          .n = problem.intermediate_size,
          .k = problem.hidden_size,
          .a = problem.x,
          .b = problem.gate_up,
          .out = problem.intermediate,
          .activation = problem.activation};
}

GemmProblem down_problem(const GatedMlpProblem& problem) noexcept {
  return {.m = problem.tokens,
          .n = problem.hidden_size,
          .k = problem.intermediate_size,
          .a = problem.intermediate,
          .b = problem.down,
          .out = problem.out};
}

std::vector<const PlannedCall*> LayerCalls::in_order() const {
  std::vector<const PlannedCall*> all{&gate_up, &down};
  if (combine) {
    all.push_back(&*combine);
  }
  return all;
}

LayerCalls layer_calls(const MoeProblem& problem, const MoeOptions& options, const DeviceSpec& device) {
  strategies::moe_layer::require_sortable(problem.experts, DeviceKind::cuda);
  const Products products = products_of(problem);
  LayerCalls calls = calls_of(products, options, device);
  calls.gate_up = strategies::moe_layer::with_routing(std::move(calls.gate_up), products.gate_up, DeviceKind::cuda);
  calls.combine = strategies::moe_layer::combine_call(problem, DeviceKind::cuda);
  return calls;
}

LayerCalls layer_calls(const GatedMlpProblem& problem, const GatedMlpOptions& options, const DeviceSpec& device) {
  return calls_of(products_of(problem), options, device);
}

Prediction forecast(const LayerCalls& calls, const DeviceSpec& device, const planner::Calibration& calibration) {
  const Prediction gate_up = of_part(of_gate_up, calls.gate_up, {}, device, calibration);
  const Prediction down = of_part(of_down, calls.down, calls.combine, device, calibration);
  Prediction out = gate_up.us() > down.us() ? gate_up : down;
  out.parts = added(gate_up.parts, down.parts);
  out.calibrated = gate_up.calibrated && down.calibrated;
  out.interval.reset();
  if (gate_up.interval && down.interval) {  // both err alike
    out.interval = {gate_up.interval->low_us + down.interval->low_us,
                    gate_up.interval->high_us + down.interval->high_us};
  }
  out.why = fmt::format("{}: {:.1f} µs, {}; {}: {:.1f} µs, {}", of_gate_up, gate_up.us(), gate_up.why, of_down,
                        down.us(), down.why);
  return out;
}

std::string layer_format_obstacle(DeviceKind kind, const DeviceSpec& device, const MoeProblem& problem,
                                  const MoeOptions& options) {
  return format_obstacle_of(products_of(problem), kind, device, options);
}

std::string layer_format_obstacle(DeviceKind kind, const DeviceSpec& device, const GatedMlpProblem& problem,
                                  const GatedMlpOptions& options) {
  return format_obstacle_of(products_of(problem), kind, device, options);
}

std::string layer_obstacle(const Device& device, const MoeProblem& problem, const MoeOptions& options) {
  try {
    strategies::moe_layer::require_sortable(problem.experts, device.kind());
  } catch (const Error& error) {
    return error.what();
  }
  return obstacle_of(products_of(problem), device, options);
}

std::string layer_obstacle(const Device& device, const GatedMlpProblem& problem, const GatedMlpOptions& options) {
  return obstacle_of(products_of(problem), device, options);
}

}  // namespace thresher::ops
