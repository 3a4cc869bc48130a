#pragma once
/// The calls of a layer of a suite.
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/task.hpp"
#include "ops/layer_calls.hpp"

namespace thresher::arena {

/// As ops::layer_calls.
[[nodiscard]] inline ops::LayerCalls calls_of(const LayerTask& task, const MoeOptions& options,
                                              const DeviceSpec& device) {
  return task.is_dense ? ops::layer_calls(gated_mlp_of(task), gated_mlp_options(options), device)
                       : ops::layer_calls(task.problem, options, device);
}

/// As ops::layer_format_obstacle.
[[nodiscard]] inline std::string unsupported_format(const LayerTask& task, const MoeOptions& options, DeviceKind kind,
                                                    const DeviceSpec& device) {
  return task.is_dense ? ops::layer_format_obstacle(kind, device, gated_mlp_of(task), gated_mlp_options(options))
                       : ops::layer_format_obstacle(kind, device, task.problem, options);
}

}  // namespace thresher::arena
