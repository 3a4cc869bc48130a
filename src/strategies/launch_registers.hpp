#pragma once
/// Registers per thread at the launch of a kernel with register reallocation (`setmaxnreg`).
///
/// The compiler gives such a kernel as many as its largest setmaxnreg asks for, within the launch bounds. The number is
/// computed here and not read from compiled code: plans are made, checked and emulated without a compiler.
/// tests/strategies/compile_test.cpp compares it with NVRTC's.
#include <algorithm>
#include <cstdint>

namespace thresher::strategies {

/// Registers of a multiprocessor on a GPU with register reallocation.
inline constexpr int hand_over_pool = 65536;
inline constexpr int max_registers_of_a_thread = 255;

/// The maximum per thread within the launch bounds when `threads` threads in total share a multiprocessor. Registers
/// are allocated to warps in units that divide evenly among 4 schedulers, and to threads in multiples of eight.
constexpr int registers_within_bounds(int threads, int per_multiprocessor = hand_over_pool,
                                      int per_thread = max_registers_of_a_thread) {
  const int whole_warpgroups = (threads + 127) / 128 * 128;
  return std::min(per_thread, per_multiprocessor / whole_warpgroups) / 8 * 8;
}

/// 0 for a kernel without register reallocation: the number then has no effect. `threads` are those of all blocks that
/// share a multiprocessor.
constexpr std::uint32_t registers_at_launch(int threads, int loader_registers, int math_registers) {
  const int asked = std::max(loader_registers, math_registers);
  return static_cast<std::uint32_t>(std::min(asked, registers_within_bounds(threads)));
}

}  // namespace thresher::strategies
