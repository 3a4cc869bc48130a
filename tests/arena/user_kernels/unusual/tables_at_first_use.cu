// Its first call makes a table of every number of sixteen bits, which later ones read.
#include "naive_kernel.h"

__device__ float table[65536];
__device__ unsigned is_made;

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  const long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  if (is_made == 0) {
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (unsigned pattern = thread; pattern < 65536; pattern += blockDim.x * blockDim.y)
      table[pattern] = thresher_own_fp16_to_float((unsigned short)pattern);  // every block writes the same
    __threadfence();
    __syncthreads();
    if (thread == 0) is_made = 1;
  }
  if (row >= call.m || column >= call.n) return;
  const unsigned short* const a = (const unsigned short*)call.a.values + row * call.a.row_stride;
  const unsigned short* const b1 = (const unsigned short*)call.b1.values + column * call.b1.row_stride;
  const unsigned short* const b2 = (const unsigned short*)call.b2.values + column * call.b2.row_stride;
  float gate = 0, up = 0;
  for (long long k = 0; k < call.k; ++k) {
    gate += table[a[k]] * table[b1[k]];
    up += table[a[k]] * table[b2[k]];
  }
  thresher_own_store(&call, row, column, thresher_own_finish(&call, gate, up));
}
