// C = A·Bᵀ + bias, one element after the other.
#include "thresher/own_kernel.h"

extern "C" void naive(const thresher_own_gemm* call) {
  const float scale = thresher_own_scale_of(&call->a, 0) * thresher_own_scale_of(&call->b, 0);
  for (long long row = 0; row < call->m; ++row) {
    for (long long column = 0; column < call->n; ++column) {
      float sum = 0;
      for (long long k = 0; k < call->k; ++k) {
        sum += thresher_own_element(&call->a, 0, row, k) * thresher_own_element(&call->b, 0, column, k);
      }
      const float bias = call->bias.values ? thresher_own_value(&call->bias, column) : 0.0F;
      thresher_own_put(&call->c, thresher_own_place(&call->c, row, column, 0, 0), sum * scale + bias);
    }
  }
}
