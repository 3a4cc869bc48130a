// Gate and up of each expert's rows, where the rows lie one behind the other.
#include "thresher/own_kernel.h"

static float product(const thresher_own_grouped_dual_gemm* call, const thresher_own_tensor* weights, long long expert,
                     long long row, long long column) {
  float sum = 0;
  for (long long k = 0; k < call->k; ++k) {
    sum += thresher_own_element(&call->a, 0, row, k) * thresher_own_element(weights, expert, column, k);
  }
  return sum * thresher_own_scale_of(&call->a, 0) * thresher_own_scale_of(weights, expert);
}

extern "C" void naive(const thresher_own_grouped_dual_gemm* call) {
  for (long long expert = 0; expert < call->experts; ++expert) {
    const long long end = thresher_own_integer(&call->offsets, expert + 1);
    for (long long row = thresher_own_integer(&call->offsets, expert); row < end; ++row) {
      for (long long column = 0; column < call->n; ++column) {
        const float gate = product(call, &call->b1, expert, row, column);
        const float up = product(call, &call->b2, expert, row, column);
        const float value =
            thresher_own_activation(call->activation, call->alpha, call->limit, call->up_offset, gate, up);
        thresher_own_put(&call->c, thresher_own_place(&call->c, row, column, 0, 0), value);
      }
    }
  }
}
