#pragma once
/// The 16-bit dual GEMM on the CPU, thread by thread and checked (machine/emulator).
#include <span>
#include <vector>

#include "strategies/dual_gemm/fused/config.hpp"
#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// Small tiles of every strategy, so that a problem of a few hundred rows has many of them; each knob is set somewhere.
std::span<const Config> small_configs();

/// Profiled kernels, and kernels that leave a part out: clean, but not right.
std::span<const Config> profiled_configs();

/// Kernels that are compiled into the library: those of small_configs(), profiled_configs() and
/// default_configs().
std::vector<CompiledIn> compiled_in();

}  // namespace thresher::strategies::dual_gemm::fused
