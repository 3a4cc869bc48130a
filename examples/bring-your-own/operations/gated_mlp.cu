// out = activation(x·gateᵀ, x·upᵀ)·downᵀ, one block for each token. The pitch asks for intermediate_size floats of
// shared memory.
#include "thresher/own_kernel.h"

__device__ static float product(const thresher_own_tensor* x, long long token, const thresher_own_tensor* weights,
                                long long row) {
  float sum = 0;
  for (long long k = 0; k < weights->shape[1]; ++k) {
    sum += thresher_own_element(x, 0, token, k) * thresher_own_element(weights, 0, row, k);
  }
  return sum * thresher_own_scale_of(x, 0) * thresher_own_scale_of(weights, 0);
}

extern "C" __global__ void naive(thresher_own_gated_mlp call) {
  extern __shared__ float between[];
  for (long long token = blockIdx.x; token < call.tokens; token += gridDim.x) {
    for (long long row = threadIdx.x; row < call.intermediate_size; row += blockDim.x) {
      const float value =
          thresher_own_activation(call.activation, call.alpha, call.limit, call.up_offset,
                                  product(&call.x, token, &call.gate, row), product(&call.x, token, &call.up, row));
      between[row] = thresher_own_rounded(value, call.intermediate_format);
    }
    __syncthreads();
    for (long long column = threadIdx.x; column < call.hidden_size; column += blockDim.x) {
      float sum = 0;
      for (long long row = 0; row < call.intermediate_size; ++row) {
        sum += between[row] * thresher_own_element(&call.down, 0, column, row);
      }
      thresher_own_put(&call.out, thresher_own_place(&call.out, token, column, 0, 0),
                       sum * thresher_own_scale_of(&call.down, 0));
    }
    __syncthreads();
  }
}
