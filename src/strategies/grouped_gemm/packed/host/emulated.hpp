#pragma once
/// The grouped GEMMs with packed weights that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::grouped_gemm::packed {

/// Packing, and the products of the small configurations; tokens are prepared by the dual GEMM's kernels.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::grouped_gemm::packed
