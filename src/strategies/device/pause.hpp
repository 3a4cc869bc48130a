#pragma once
/// A kernel that does nothing for a while: work behind it can be enqueued whole before any of it starts.
#include "machine/clock.hpp"
#include "machine/config.hpp"

namespace thresher::strategies {

/// One thread; Nanoseconds is u64.
template <typename Nanoseconds>
TH_KERNEL(32, 1)
pause(TH_GRID_CONSTANT const Nanoseconds duration) {
  const Nanoseconds start = machine::clock::nanoseconds();
  while (machine::clock::nanoseconds() - start < duration) {
  }
}

}  // namespace thresher::strategies
