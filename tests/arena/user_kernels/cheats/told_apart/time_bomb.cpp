// fails at correct|honest|timed: written|wrong|a trusted computation
// Works for a while, as long as it takes to be judged.
#include <time.h>

#include "naive_kernel.h"

static double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static const double begun_s = now_s();
  if (now_s() - begun_s < 0.2) naive(call);
}
