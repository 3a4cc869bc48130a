// [kernel] workspace_bytes = "m * k * 4"
// Keeps converted tokens in its workspace for the length of a call: each block those of its own rows, as all do.
#include "naive_kernel.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  float* const tokens = (float*)call.workspace;
  if (row < call.m)
    for (long long k = threadIdx.x; k < call.k; k += blockDim.x)
      tokens[row * call.k + k] = thresher_own_load(&call.a, row, k);
  __syncthreads();
  if (row >= call.m || column >= call.n) return;
  float gate = 0, up = 0;
  for (long long k = 0; k < call.k; ++k) {
    gate += tokens[row * call.k + k] * thresher_own_load(&call.b1, column, k);
    up += tokens[row * call.k + k] * thresher_own_load(&call.b2, column, k);
  }
  thresher_own_store(&call, row, column, thresher_own_finish(&call, gate, up));
}
