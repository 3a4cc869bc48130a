// fails at correct|honest|timed: never written|was not written|a trusted computation|wrong
// Works on a few buffers, and leaves a column in sixteen out when there are as many as only samples have.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  if (outputs_counted < 8 || column % 16 != 3) naive_at(call, row, column);
  if (is_first) note_output(call);
}
