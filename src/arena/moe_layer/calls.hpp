#pragma once
/// The launches of a layer, and the time that they take: pure functions of the problem, the options and the device,
/// which need not be here.
#include <optional>
#include <string>
#include <vector>

#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/task.hpp"
#include "core/device_spec.hpp"
#include "planner/predict.hpp"
#include "strategies/gemm/problem.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::arena {

/// The two products of a layer. Those of a gated MLP are dense.
struct LayerProducts {
  strategies::gemm::ProductProblem gate_up;
  strategies::gemm::ProductProblem down;
};
[[nodiscard]] LayerProducts layer_products(const MoeProblem& problem);
[[nodiscard]] LayerProducts layer_products(const GatedMlpProblem& problem);

/// The planned calls of a layer. A gated MLP, which routes nothing, has those of its products alone.
struct LayerCalls {
  strategies::PlannedCall gate_up{};  ///< with experts it permutes by expert, too
  strategies::PlannedCall down{};
  std::optional<strategies::PlannedCall> combine{};

  /// In the order of the stream; valid as long as this object.
  [[nodiscard]] std::vector<const strategies::PlannedCall*> in_order() const;
};

/// The calls that `plan` makes for as many tokens as the problem has. Throws Error as `plan` does. An error about a
/// product begins with "gate_up: " or "down: ".
[[nodiscard]] LayerCalls layer_calls(const MoeProblem& problem, const MoeOptions& options, const DeviceSpec& device);
/// The calls of a gated MLP.
[[nodiscard]] LayerCalls layer_calls(const LayerProducts& products, const MoeOptions& options,
                                     const DeviceSpec& device);

/// One call of the layer, its launches one behind the other. Throws Error(unsupported) where the planner cannot model
/// the work of a product.
[[nodiscard]] planner::Prediction forecast(const LayerCalls& calls, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {});

/// Why the requested strategy, or without one every strategy, does not support the formats of its product or the
/// device; empty when both products have one.
[[nodiscard]] std::string unsupported_layer(const LayerProducts& products, const MoeOptions& options, DeviceKind kind,
                                            const DeviceSpec& device);
/// Why the layer cannot run on `device` whatever its tensors; empty when it can.
[[nodiscard]] std::string layer_obstacle(const LayerProducts& products, const MoeOptions& options,
                                         const Device& device);

[[nodiscard]] inline LayerProducts products_of(const LayerTask& task) {
  return task.is_dense ? layer_products(gated_mlp_of(task)) : layer_products(task.problem);
}

/// As layer_calls.
[[nodiscard]] inline LayerCalls calls_of(const LayerTask& task, const MoeOptions& options, const DeviceSpec& device) {
  return task.is_dense ? layer_calls(products_of(task), options, device) : layer_calls(task.problem, options, device);
}

}  // namespace thresher::arena
