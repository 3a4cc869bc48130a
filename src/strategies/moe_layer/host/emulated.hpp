#pragma once
/// The kernels around a layer's products, compiled for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::moe_layer {

[[nodiscard]] std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::moe_layer
