#pragma once
/// The grouped GEMMs of 16-bit operands on tcgen05 that are compiled into the library for the CPU.
#include <vector>

#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::grouped_gemm::tcgen05_plain {

/// The small configurations.
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::grouped_gemm::tcgen05_plain
