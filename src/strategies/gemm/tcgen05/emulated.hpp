#pragma once
/// The kernels of this folder that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::gemm::tcgen05 {

/// The products of the small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::gemm::tcgen05
