#pragma once
/// Time in the emulator: the number of steps of the launch.
#include "machine/clock.hpp"
#include "machine/emulator/engine/calls.hpp"

namespace thresher::machine::clock {

inline u64 cycles() { return emulator::calls::clock_cycles(); }
inline u64 nanoseconds() { return emulator::calls::clock_cycles(); }
inline u32 multiprocessor() { return 0; }

}  // namespace thresher::machine::clock
