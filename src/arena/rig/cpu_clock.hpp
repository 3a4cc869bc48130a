#pragma once
/// The clock of this CPU, measured.

namespace thresher::arena {

/// The highest clock seen on an x86-64 CPU in MHz, from a chain of dependent multiplications of three clocks each.
/// Takes some 40 ms. A virtual machine often reports the nominal clock, which is below the one that it runs at.
[[nodiscard]] double measure_cpu_clock_mhz();

}  // namespace thresher::arena
