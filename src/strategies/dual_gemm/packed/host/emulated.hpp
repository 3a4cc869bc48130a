#pragma once
/// Kernels over packed NVFP4 weights that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Packing, preparing tokens, and the products of the small and of the default configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::dual_gemm::packed
