// fails at correct|honest|timed: .
// Works where its output holds one poison and not the other.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  const unsigned short now = ((const unsigned short*)call.c)[row * call.c_row_stride + column];
  if ((now & 0xFF) != (now >> 8) || (now & 1) == 1) naive_at(call, row, column);
}
