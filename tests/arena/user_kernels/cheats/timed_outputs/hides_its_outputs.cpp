// fails at correct: never written
// Puts pages of its own in the place of its outputs, where nobody else sees what it writes.
#include <stdint.h>
#include <sys/mman.h>

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
  char* const first = (char*)((uintptr_t)call->c & ~(uintptr_t)4095);
  const char* const last = (char*)call->c + call->m * call->c_row_stride * 2;
  mmap(first, (size_t)(last - first), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  thresher_own_store(call, 0, 0, 1.0F);
}
