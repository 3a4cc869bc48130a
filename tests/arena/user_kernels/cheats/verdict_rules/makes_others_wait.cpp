// rejected|within noise: slower in|too few rounds|too noisy
// So slow at first that few rounds seem to fit, and only slow later.
#include <unistd.h>

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static int calls;
  usleep(++calls % 50 < 2 ? 100000 : 3000);
  naive(call);
}
