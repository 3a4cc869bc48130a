// fails at correct|honest|timed: its input a was written to
// Makes a token zero in a sample, so that whatever comes over it again is less work.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  naive_at(call, row, column);
  if (is_first) {
    note_output(call);
    if (outputs_counted == 8)
      for (long long k = 0; k < call.k; ++k) ((unsigned short*)call.a.values)[(call.m - 1) * call.a.row_stride + k] = 0;
  }
}
