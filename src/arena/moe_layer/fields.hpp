#pragma once
/// The parts of a layer's problems.
#include "arena/gemm/fields.hpp"
#include "arena/moe_layer/task.hpp"

namespace thresher::arena {

/// Those that a gated MLP has, or a layer of experts.
[[nodiscard]] Fields<LayerTask> layer_fields(bool is_dense);

}  // namespace thresher::arena
