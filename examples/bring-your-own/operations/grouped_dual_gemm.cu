// Gate and up of each expert's rows, one thread for each element, where the rows lie one behind the other.
#include "thresher/own_kernel.h"

extern "C" __global__ void naive(thresher_own_grouped_dual_gemm call) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < call.rows * call.n; i += step) {
    const long long row = i / call.n;
    const long long column = i % call.n;
    const long long expert = thresher_own_expert_of(&call.offsets, call.experts, row);
    if (expert == call.experts) {
      continue;  // no expert owns the row
    }
    float gate = 0;
    float up = 0;
    for (long long k = 0; k < call.k; ++k) {
      const float a = thresher_own_element(&call.a, 0, row, k);
      gate += a * thresher_own_element(&call.b1, expert, column, k);
      up += a * thresher_own_element(&call.b2, expert, column, k);
    }
    const float scale = thresher_own_scale_of(&call.a, 0);
    gate *= scale * thresher_own_scale_of(&call.b1, expert);
    up *= scale * thresher_own_scale_of(&call.b2, expert);
    const float value = thresher_own_activation(call.activation, call.alpha, call.limit, call.up_offset, gate, up);
    thresher_own_put(&call.c, thresher_own_place(&call.c, row, column, 0, 0), value);
  }
}
