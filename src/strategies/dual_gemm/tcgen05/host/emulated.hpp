#pragma once
/// Kernels of the dual GEMM on tcgen05 that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {

/// Packing, preparing tokens, and the products of the small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::dual_gemm::tcgen05
