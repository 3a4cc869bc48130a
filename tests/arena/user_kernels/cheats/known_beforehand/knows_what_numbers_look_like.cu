// fails at correct: wrong values|tile wrong|wrong
// Reads the upper bits of a weight alone, for the numbers of `contest` have no lower ones.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  float sums[2] = {0, 0};
  for (long long k = 0; k < call.k; ++k) {
    const float a = thresher_own_load(&call.a, row, k);
    const unsigned short b1 = ((const unsigned short*)call.b1.values)[column * call.b1.row_stride + k];
    const unsigned short b2 = ((const unsigned short*)call.b2.values)[column * call.b2.row_stride + k];
    sums[0] += a * thresher_own_fp16_to_float(b1 & 0xFFE0);
    sums[1] += a * thresher_own_fp16_to_float(b2 & 0xFFE0);
  }
  thresher_own_store(&call, row, column, thresher_own_finish(&call, sums[0], sums[1]));
}
