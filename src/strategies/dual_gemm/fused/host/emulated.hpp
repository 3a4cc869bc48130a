#pragma once
/// The 16-bit dual GEMM on the CPU, thread by thread and checked (machine/emulator).
#include <span>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "strategies/dual_gemm/fused/host/geometry.hpp"
#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::dual_gemm::fused {

/// Operands in host memory, as on the GPU: K contiguous, 16-byte aligned rows.
struct EmulatedProblem {
  Extents extents;
  Matrix a;
  Matrix b1_gate;
  Matrix b2_up;
  Matrix c;
  Activation activation;
  Matrix profile{};  ///< words of a profiled kernel (pipeline/timeline.hpp); not for others
};

/// Small tiles of every strategy, so that a problem of a few hundred rows has many of them; each knob is set somewhere.
std::span<const Config> small_configs();

/// Profiled kernels, and kernels that leave a part out: clean, but not right.
std::span<const Config> profiled_configs();

/// Kernels that are compiled into the library: those of small_configs(), profiled_configs() and
/// default_configs().
std::vector<CompiledIn> compiled_in();

/// Runs `kernel`, which is that of `config`; `memory` names the buffers.
emulator::Report emulate(HostKernel kernel, const Config& config, const EmulatedProblem& problem,
                         const emulator::GlobalMemory& memory, const emulator::Options& options);

}  // namespace thresher::strategies::dual_gemm::fused
