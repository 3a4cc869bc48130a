#pragma once
/// The calls of a layer of a suite.
#include "arena/moe_layer/options.hpp"
#include "arena/moe_layer/task.hpp"
#include "ops/layer_calls.hpp"

namespace thresher::arena {

[[nodiscard]] inline ops::LayerProducts products_of(const LayerTask& task) {
  return task.is_dense ? ops::layer_products(gated_mlp_of(task)) : ops::layer_products(task.problem);
}

/// As ops::layer_calls.
[[nodiscard]] inline ops::LayerCalls calls_of(const LayerTask& task, const MoeOptions& options,
                                              const DeviceSpec& device) {
  return task.is_dense ? ops::layer_calls(products_of(task), options, device)
                       : ops::layer_calls(task.problem, options, device);
}

}  // namespace thresher::arena
