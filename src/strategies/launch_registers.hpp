#pragma once
/// How many registers a thread starts with, of a kernel whose warpgroups then hand registers over.
///
/// The compiler gives such a kernel as many as its largest hand-over asks for, within what the launch bounds leave a
/// thread. That is decided here for everybody and not read from compiled code: plans are made, judged and emulated
/// where nothing was compiled. tests/strategies/compile_test.cpp holds it against what NVRTC does.
#include <algorithm>
#include <cstdint>

namespace thresher::strategies {

/// A multiprocessor of a GPU whose warpgroups can hand registers over.
inline constexpr int hand_over_pool = 65536;
inline constexpr int max_registers_of_a_thread = 255;

/// What launch bounds leave a thread where `threads` in all share a multiprocessor: registers are allotted to warps in
/// units that divide evenly among 4 schedulers, and to threads by eights.
constexpr int registers_within_bounds(int threads, int per_multiprocessor = hand_over_pool,
                                      int per_thread = max_registers_of_a_thread) {
  const int whole_warpgroups = (threads + 127) / 128 * 128;
  return std::min(per_thread, per_multiprocessor / whole_warpgroups) / 8 * 8;
}

/// 0 for a kernel without a hand-over: nothing depends on the number then. `threads` are those of all blocks that are
/// meant to share a multiprocessor.
constexpr std::uint32_t registers_at_launch(int threads, int loader_registers, int math_registers) {
  const int asked = std::max(loader_registers, math_registers);
  return static_cast<std::uint32_t>(std::min(asked, registers_within_bounds(threads)));
}

}  // namespace thresher::strategies
