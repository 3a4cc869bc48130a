#pragma once
/// The grouped GEMMs on tcgen05 that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05 {

/// Packing, and preparation and products of the small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::grouped_gemm::tcgen05
