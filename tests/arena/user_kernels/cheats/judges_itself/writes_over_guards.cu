// fails at correct: past the end|before the beginning
// What lies around its outputs belongs to the judge, and is written over.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  naive_at(call, row, column);
  if (is_first) {
    for (int i = 1; i <= 64; ++i) {
      ((unsigned short*)call.c)[-i] = 0;
      ((unsigned short*)call.c)[call.m * call.c_row_stride + i] = 0;
    }
  }
}
