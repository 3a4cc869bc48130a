#pragma once
/// The grouped GEMMs in 16 bits that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::grouped_gemm::rows {

/// The products of the small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::grouped_gemm::rows
