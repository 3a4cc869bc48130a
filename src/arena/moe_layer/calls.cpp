#include "arena/moe_layer/calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/forecast.hpp"
#include "ops/layer_parts.hpp"
#include "ops/product_choice.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using ops::forecast;
using ops::of_product;
using planner::Prediction;
using strategies::PlannedCall;
using strategies::gemm::ProductProblem;

constexpr const char* gate_up_title = "gate_up";
constexpr const char* down_title = "down";

/// The sentence that `find` gives about gate and up, or else the one about down; empty without either.
std::string first_sentence(const LayerProducts& products, const MoeOptions& options, const auto& find) {
  const std::string gate_up = find(gate_up_title, products.gate_up, options.gate_up);
  if (!gate_up.empty()) {
    return fmt::format("{}: {}", gate_up_title, gate_up);
  }
  const std::string down = find(down_title, products.down, options.down);
  return down.empty() ? "" : fmt::format("{}: {}", down_title, down);
}

/// Where `plan` chooses the strategy: why none supports the product.
std::string unsupported_by_all(const ProductProblem& problem, DeviceKind kind, const DeviceSpec& device) {
  const auto all = strategies::gemm::strategies_of(strategies::gemm::product_of(problem), kind);
  const bool is_supported =
      std::any_of(all.begin(), all.end(), [&](const auto* one) { return !one->unsupported_reason(problem, device); });
  return is_supported ? ""
                      : fmt::format("no strategy is made for {} with {} to {} on {}", name(problem.a), name(problem.b),
                                    name(problem.out), device.name);
}

/// The prediction of a product with the passes over memory that belong to it.
Prediction predicted(const char* product, const PlannedCall& call, const std::optional<PlannedCall>& beside,
                     const DeviceSpec& device, const planner::Calibration& calibration) {
  return of_product(product, [&] {
    PlannedCall with_passes = call;
    if (beside && !call.work.parts.empty()) {
      with_passes.work.parts.insert(with_passes.work.parts.end(), beside->work.parts.begin(), beside->work.parts.end());
    }
    return forecast(with_passes, device, calibration);
  });
}

}  // namespace

LayerProducts layer_products(const MoeProblem& problem) { return {gate_up_problem(problem), down_problem(problem)}; }
LayerProducts layer_products(const GatedMlpProblem& problem) {
  return {ops::gate_up_problem(problem), ops::down_problem(problem)};
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
  const LayerProducts products = layer_products(problem);
  LayerCalls calls = layer_calls(products, options, device);
  calls.gate_up = strategies::moe_layer::with_routing(std::move(calls.gate_up), products.gate_up, DeviceKind::cuda);
  if (strategies::moe_layer::settles(calls.gate_up)) {
    calls.down = strategies::moe_layer::with_settled_groups(std::move(calls.down));
  }
  calls.combine =
      strategies::moe_layer::combine_call(problem, DeviceKind::cuda, strategies::moe_layer::settles(calls.down));
  return calls;
}

LayerCalls layer_calls(const LayerProducts& products, const MoeOptions& options, const DeviceSpec& device) {
  return {.gate_up =
              of_product(gate_up_title, [&] { return ops::planned_call(products.gate_up, options.gate_up, device); }),
          .down = of_product(down_title, [&] { return ops::planned_call(products.down, options.down, device); })};
}

Prediction forecast(const LayerCalls& calls, const DeviceSpec& device, const planner::Calibration& calibration) {
  const Prediction gate_up = predicted(gate_up_title, calls.gate_up, {}, device, calibration);
  const Prediction down = predicted(down_title, calls.down, calls.combine, device, calibration);
  Prediction out = gate_up.us() > down.us() ? gate_up : down;
  out.parts = gate_up.parts;
  out.parts += down.parts;
  out.calibrated = gate_up.calibrated && down.calibrated;
  out.interval.reset();
  if (gate_up.interval && down.interval) {  // both err alike
    out.interval = {gate_up.interval->low_us + down.interval->low_us,
                    gate_up.interval->high_us + down.interval->high_us};
  }
  out.why = fmt::format("{}: {:.1f} µs, {}; {}: {:.1f} µs, {}", gate_up_title, gate_up.us(), gate_up.why, down_title,
                        down.us(), down.why);
  return out;
}

std::string unsupported_layer(const LayerProducts& products, const MoeOptions& options, DeviceKind kind,
                              const DeviceSpec& device) {
  return first_sentence(products, options, [&](const char* product, const auto& problem, const auto& asked) {
    return asked.strategy.empty()
               ? unsupported_by_all(problem, kind, device)
               : of_product(product, [&] { return ops::unsupported_reason(kind, device, problem, asked); });
  });
}

std::string layer_obstacle(const LayerProducts& products, const MoeOptions& options, const Device& device) {
  if (!products.gate_up.is_dense()) {
    try {
      strategies::moe_layer::require_sortable(products.gate_up.experts, device.kind());
    } catch (const Error& error) {
      return error.what();
    }
  }
  return first_sentence(products, options, [&](const char*, const auto& problem, const auto& asked) {
    return ops::product_obstacle(device, problem, asked);
  });
}

}  // namespace thresher::arena
