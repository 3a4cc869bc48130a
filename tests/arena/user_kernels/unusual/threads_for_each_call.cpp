// [kernel] options = ["-pthread"]
// Two threads are started for each call, and joined.
#include <pthread.h>

#include "naive_kernel.h"

struct Half {
  const thresher_own_dual_gemm* call;
  long long first;
};

static void* rows_of(void* half) {
  const Half* const own = (const Half*)half;
  for (long long row = own->first; row < own->call->m; row += 2) naive_row(own->call, row);
  return nullptr;
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  Half halves[2] = {{call, 0}, {call, 1}};
  pthread_t threads[2];
  int started = 0;
  for (; started < 2; ++started)
    if (pthread_create(&threads[started], nullptr, rows_of, &halves[started]) != 0) break;
  for (int i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  for (int i = started; i < 2; ++i) rows_of(&halves[i]);
}
