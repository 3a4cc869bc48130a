/* The plain computation of dual_gemm, for kernels that tests bring. Their sources include it, or begin with its text.
 */
#ifndef THRESHER_TESTS_NAIVE_KERNEL_H
#define THRESHER_TESTS_NAIVE_KERNEL_H

#include "thresher/own_kernel.h"

THRESHER_OWN_FUNCTION float naive_element(const thresher_own_dual_gemm* call, long long row, long long column) {
  float gate = 0;
  float up = 0;
  for (long long k = 0; k < call->k; ++k) {
    const float a = thresher_own_load(&call->a, row, k);
    gate += a * thresher_own_load(&call->b1, column, k);
    up += a * thresher_own_load(&call->b2, column, k);
  }
  return thresher_own_finish(call, gate, up);
}

THRESHER_OWN_FUNCTION void naive_row(const thresher_own_dual_gemm* call, long long row) {
  for (long long column = 0; column < call->n; ++column) {
    thresher_own_store(call, row, column, naive_element(call, row, column));
  }
}

THRESHER_OWN_FUNCTION void naive(const thresher_own_dual_gemm* call) {
  for (long long row = 0; row < call->m; ++row) {
    naive_row(call, row);
  }
}

#endif
