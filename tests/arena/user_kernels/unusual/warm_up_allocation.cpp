// Memory for converted operands, more whenever a call needs more, by mmap with advice about its pages.
#include <sys/mman.h>

#include "naive_kernel.h"

static float* memory;
static size_t bytes;

extern "C" void mine(const thresher_own_dual_gemm* call) {
  const size_t needed = (size_t)(3 * call->k) * sizeof(float) + (64U << 20);
  if (needed > bytes) {
    if (memory != nullptr) munmap(memory, bytes);
    memory = (float*)mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, needed, MADV_HUGEPAGE);
    for (size_t page = 0; page < needed; page += 4096) ((char*)memory)[page] = 0;
    bytes = needed;
  }
  float* const a = memory;
  float* const b1 = a + call->k;
  float* const b2 = b1 + call->k;
  for (long long column = 0; column < call->n; ++column) {
    for (long long k = 0; k < call->k; ++k) {
      b1[k] = thresher_own_load(&call->b1, column, k);
      b2[k] = thresher_own_load(&call->b2, column, k);
    }
    for (long long row = 0; row < call->m; ++row) {
      float gate = 0, up = 0;
      for (long long k = 0; k < call->k; ++k) {
        a[k] = thresher_own_load(&call->a, row, k);
        gate += a[k] * b1[k];
        up += a[k] * b2[k];
      }
      thresher_own_store(call, row, column, thresher_own_finish(call, gate, up));
    }
  }
}
