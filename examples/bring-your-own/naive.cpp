// The same on the CPU.
#include "thresher/own_kernel.h"

extern "C" void naive(const thresher_own_dual_gemm* call) {
  for (long long row = 0; row < call->m; ++row) {
    for (long long column = 0; column < call->n; ++column) {
      float gate = 0;
      float up = 0;
      for (long long k = 0; k < call->k; ++k) {
        const float a = thresher_own_load(&call->a, row, k);
        gate += a * thresher_own_load(&call->b1, column, k);
        up += a * thresher_own_load(&call->b2, column, k);
      }
      thresher_own_store(call, row, column, thresher_own_finish(call, gate, up));
    }
  }
}
