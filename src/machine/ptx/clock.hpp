#pragma once
/// Clocks of the GPU.
#include "machine/clock.hpp"

namespace thresher::machine::clock {

TH_DEVICE u64 cycles() {
  u64 value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
  return value;
}

TH_DEVICE u64 nanoseconds() {
  u64 value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

TH_DEVICE u32 multiprocessor() {
  u32 value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

}  // namespace thresher::machine::clock
