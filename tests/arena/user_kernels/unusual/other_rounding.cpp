// Flushes subnormal sums to zero while it computes, and leaves everything as it was.
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8000U);
#endif
  naive(call);
#if defined(__x86_64__)
  _mm_setcsr(before);
#endif
}
