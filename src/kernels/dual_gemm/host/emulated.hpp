#pragma once
/// The 16-bit dual GEMM on the CPU, thread by thread and checked (machine/emulator).
#include <span>

#include "kernels/dual_gemm/host/geometry.hpp"
#include "machine/emulator/engine/launch.hpp"

namespace thresher::kernels::dual_gemm {

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

/// Knob sets whose kernels are compiled into the library.
std::span<const Config> emulated_configs();

/// Profiled kernels, and kernels that leave a part out: clean, but not right.
std::span<const Config> emulated_profiles();

/// Runs the kernel of one of emulated_configs() or emulated_profiles(); throws Error(unsupported) for any other.
/// `memory` names the buffers.
emulator::Report emulate(const Config& config, const EmulatedProblem& problem, const emulator::GlobalMemory& memory,
                         const emulator::Options& options);

}  // namespace thresher::kernels::dual_gemm
