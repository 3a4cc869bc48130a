#pragma once
/// The kernels over packed NVFP4 weights that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

/// Packing, preparing tokens, and the products of the small configurations and of the dense default ones.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::gemm::wgmma_dequant
