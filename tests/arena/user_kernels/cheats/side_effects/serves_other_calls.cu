// fails at correct|honest|timed: .
// Remembers where others of its calls write, and writes there.
#include "gpu.h"

__device__ unsigned short* other;

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  naive_at(call, row, column);
  if (is_first) {
    if (other != nullptr && other != (unsigned short*)call.c) *other = 0x1234;
    other = (unsigned short*)call.c;
  }
}
