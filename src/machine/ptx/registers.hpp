#pragma once
/// setmaxnreg on the GPU.
#include "machine/registers.hpp"

namespace thresher::machine::registers {

template <int count>
TH_DEVICE void increase(Site) {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256, "setmaxnreg takes multiples of 8 from 24 to 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count>
TH_DEVICE void decrease(Site) {
  static_assert(count % 8 == 0 && count >= 24 && count <= 256, "setmaxnreg takes multiples of 8 from 24 to 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

}  // namespace thresher::machine::registers
