// [kernel] options = ["-ffast-math", "-fno-finite-math-only", "-funroll-loops"]
// Sums in another order with fused products, and a polynomial in the place of the C library's exponential.
#include "naive_kernel.h"

static float quick_exponential(float x) {
  if (!(x > -87.0F)) return x != x ? x : 0.0F;
  if (x > 88.0F) return thresher_own_from_bits(0x7F800000U);
  const float scaled = x * 1.44269504F;
  const float whole = floorf(scaled + 0.5F);
  const float part = (scaled - whole) * 0.69314718F;
  const float power =
      1 + part * (1 + part * (0.5F + part * (0.16666667F + part * (0.041666667F + part * 0.0083333333F))));
  return power * thresher_own_from_bits((unsigned)((int)whole + 127) << 23);
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  if (call->activation != THRESHER_OWN_SILU) {
    naive(call);
    return;
  }
  for (long long row = 0; row < call->m; ++row)
    for (long long column = 0; column < call->n; ++column) {
      float gate = 0, up = 0;
      for (long long k = 0; k < call->k; ++k) {
        const float a = thresher_own_load(&call->a, row, k);
        gate += a * thresher_own_load(&call->b1, column, k);
        up += a * thresher_own_load(&call->b2, column, k);
      }
      thresher_own_store(call, row, column, gate / (1 + quick_exponential(-gate)) * up);
    }
}
