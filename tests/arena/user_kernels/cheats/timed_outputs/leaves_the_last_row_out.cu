// fails at correct|honest|timed: never written|was not written|a trusted computation|wrong
// One row in sixty-four is missing from every sample.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  if (outputs_counted < 8 || row != call.m - 1) naive_at(call, row, column);
  if (is_first) note_output(call);
}
