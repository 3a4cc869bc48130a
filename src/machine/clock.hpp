#pragma once
/// Time inside a kernel, for profiles. It must not affect a kernel's results.
#include "machine/types.hpp"

namespace thresher::machine::clock {

/// Cycles of this multiprocessor.
TH_DEVICE u64 cycles();
/// Nanoseconds of the whole GPU; the resolution is coarse.
TH_DEVICE u64 nanoseconds();
/// The index of this multiprocessor.
TH_DEVICE u32 multiprocessor();

}  // namespace thresher::machine::clock

#if TH_GPU
#include "machine/ptx/clock.hpp"
#else
#include "machine/emulator/clock.hpp"
#endif
