// The last block of a call to come writes the first column again, as kernels with a split sum do, and puts its counter
// right.
#include "naive_kernel.h"

__device__ unsigned arrived;

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  __shared__ bool is_last;
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  if (row < call.m && column < call.n) thresher_own_store(&call, row, column, naive_element(&call, row, column));
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) is_last = atomicAdd(&arrived, 1u) == gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x == 0 && threadIdx.y == 0) arrived = 0;
  for (long long r = threadIdx.y; r < call.m; r += blockDim.y)
    thresher_own_store(&call, r, 0, naive_element(&call, r, 0));
}
