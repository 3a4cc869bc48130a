#pragma once
/// What the layers, which run several products one behind the other, would launch, and how long that takes: pure
/// functions of the problem, what is asked for and the device, which need not be here.
#include <optional>
#include <string>
#include <vector>

#include "core/device_spec.hpp"
#include "planner/predict.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/moe_layer.hpp"

namespace thresher::ops {

/// The products of a gated MLP, as those of MoeProblem are.
[[nodiscard]] DualGemmProblem gate_up_problem(const GatedMlpProblem& problem) noexcept;
[[nodiscard]] GemmProblem down_problem(const GatedMlpProblem& problem) noexcept;

/// The planned calls of a layer. A gated MLP, which routes nothing, has those of its products alone.
struct LayerCalls {
  strategies::PlannedCall gate_up{};  ///< of experts, it sorts the choices, too
  strategies::PlannedCall down{};
  std::optional<strategies::PlannedCall> combine{};

  /// In the order of the stream; valid as long as this object.
  [[nodiscard]] std::vector<const strategies::PlannedCall*> in_order() const;
};

/// What `plan` would launch for as many tokens as the problem has. Throws Error as `plan` does, in a sentence that
/// begins with "gate_up: " or "down: " where it is about a product.
[[nodiscard]] LayerCalls layer_calls(const MoeProblem& problem, const MoeOptions& options, const DeviceSpec& device);
[[nodiscard]] LayerCalls layer_calls(const GatedMlpProblem& problem, const GatedMlpOptions& options,
                                     const DeviceSpec& device);

/// One call of the layer, its launches one behind the other. Throws Error(unsupported) where the planner has no words
/// for the work of a product.
[[nodiscard]] planner::Prediction forecast(const LayerCalls& calls, const DeviceSpec& device,
                                           const planner::Calibration& calibration = {});

/// Why the strategy that is asked for, or any where none is, is not made for the formats of its product or for the
/// device; empty when both products have one.
[[nodiscard]] std::string layer_format_obstacle(DeviceKind kind, const DeviceSpec& device, const MoeProblem& problem,
                                                const MoeOptions& options);
[[nodiscard]] std::string layer_format_obstacle(DeviceKind kind, const DeviceSpec& device,
                                                const GatedMlpProblem& problem, const GatedMlpOptions& options);
/// Why the layer cannot run on `device` whatever its tensors; empty when it can.
[[nodiscard]] std::string layer_obstacle(const Device& device, const MoeProblem& problem, const MoeOptions& options);
[[nodiscard]] std::string layer_obstacle(const Device& device, const GatedMlpProblem& problem,
                                         const GatedMlpOptions& options);

}  // namespace thresher::ops
