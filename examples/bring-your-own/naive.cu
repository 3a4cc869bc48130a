// One thread for each output, everything straight from memory: slow, and right in every format and shape.
#include "thresher/own_kernel.h"

extern "C" __global__ void naive(thresher_own_dual_gemm call) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= call.m || column >= call.n) {
    return;
  }
  float gate = 0;
  float up = 0;
  for (long long k = 0; k < call.k; ++k) {
    const float a = thresher_own_load(&call.a, row, k);
    gate += a * thresher_own_load(&call.b1, column, k);
    up += a * thresher_own_load(&call.b2, column, k);
  }
  thresher_own_store(&call, row, column, thresher_own_finish(&call, gate, up));
}
