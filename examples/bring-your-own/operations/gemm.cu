// C = A·Bᵀ + bias, one thread for each element.
#include "thresher/own_kernel.h"

extern "C" __global__ void naive(thresher_own_gemm call) {
  const float scale = thresher_own_scale_of(&call.a, 0) * thresher_own_scale_of(&call.b, 0);
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < call.m * call.n; i += step) {
    const long long row = i / call.n;
    const long long column = i % call.n;
    float sum = 0;
    for (long long k = 0; k < call.k; ++k) {
      sum += thresher_own_element(&call.a, 0, row, k) * thresher_own_element(&call.b, 0, column, k);
    }
    const float bias = call.bias.values ? thresher_own_value(&call.bias, column) : 0.0F;
    thresher_own_put(&call.c, thresher_own_place(&call.c, row, column, 0, 0), sum * scale + bias);
  }
}
