// [kernel] options = ["--use_fast_math"]
// Four partial sums and the GPU's own exponential.
#include "naive_kernel.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= call.m || column >= call.n) return;
  float gate[4] = {0, 0, 0, 0}, up[4] = {0, 0, 0, 0};
  for (long long k = 0; k < call.k; k += 4)
    for (int i = 0; i < 4 && k + i < call.k; ++i) {
      const float a = thresher_own_load(&call.a, row, k + i);
      gate[i] += a * thresher_own_load(&call.b1, column, k + i);
      up[i] += a * thresher_own_load(&call.b2, column, k + i);
    }
  thresher_own_store(
      &call, row, column,
      thresher_own_finish(&call, (gate[0] + gate[1]) + (gate[2] + gate[3]), (up[0] + up[1]) + (up[2] + up[3])));
}
