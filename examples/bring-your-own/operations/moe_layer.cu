// A layer of experts, one block for each token. The pitch asks for top_k * intermediate_size floats of shared memory.
#include "thresher/own_kernel.h"

__device__ static float bias_of(const thresher_own_tensor* bias, long long expert, long long column) {
  return bias->values ? thresher_own_value(bias, thresher_own_place(bias, expert, column, 0, 0)) : 0.0F;
}

__device__ static float product(const thresher_own_moe_layer* call, long long token, const thresher_own_tensor* weights,
                                long long expert, long long row) {
  float sum = 0;
  for (long long k = 0; k < call->hidden_size; ++k) {
    sum += thresher_own_element(&call->x, 0, token, k) * thresher_own_element(weights, expert, row, k);
  }
  return sum * thresher_own_scale_of(&call->x, 0) * thresher_own_scale_of(weights, expert);
}

__device__ static float between_products(const thresher_own_moe_layer* call, long long token, long long expert,
                                         long long row) {
  const float gate = product(call, token, &call->gate, expert, row) + bias_of(&call->gate_bias, expert, row);
  const float up = product(call, token, &call->up, expert, row) + bias_of(&call->up_bias, expert, row);
  const float value = thresher_own_activation(call->activation, call->alpha, call->limit, call->up_offset, gate, up);
  return thresher_own_rounded(value, call->intermediate_format);
}

__device__ static float choice_of(const thresher_own_moe_layer* call, const float* between, long long expert,
                                  long long column) {
  float sum = 0;
  for (long long row = 0; row < call->intermediate_size; ++row) {
    sum += between[row] * thresher_own_element(&call->down, expert, column, row);
  }
  sum = sum * thresher_own_scale_of(&call->down, expert) + bias_of(&call->down_bias, expert, column);
  return thresher_own_rounded(sum, call->rows_format);
}

extern "C" __global__ void naive(thresher_own_moe_layer call) {
  extern __shared__ float between[];
  const long long rows = call.intermediate_size;
  for (long long token = blockIdx.x; token < call.tokens; token += gridDim.x) {
    for (long long i = threadIdx.x; i < call.top_k * rows; i += blockDim.x) {
      const int expert = thresher_own_integer(&call.topk_ids, token * call.top_k + i / rows);
      between[i] = expert >= 0 && expert < call.experts ? between_products(&call, token, expert, i % rows) : 0.0F;
    }
    __syncthreads();
    for (long long column = threadIdx.x; column < call.hidden_size; column += blockDim.x) {
      float sum = 0;
      for (long long choice = 0; choice < call.top_k; ++choice) {
        const long long place = token * call.top_k + choice;
        const int expert = thresher_own_integer(&call.topk_ids, place);
        if (expert >= 0 && expert < call.experts) {
          sum +=
              thresher_own_value(&call.topk_weights, place) * choice_of(&call, between + choice * rows, expert, column);
        }
      }
      thresher_own_put(&call.out, thresher_own_place(&call.out, token, column, 0, 0), sum);
    }
    __syncthreads();
  }
}
