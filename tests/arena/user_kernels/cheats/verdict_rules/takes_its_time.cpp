// rejected|within noise: slower in|too few rounds|too noisy
// A hundred times slower, in few rounds.
#include <unistd.h>

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
  usleep(4000);
  naive(call);
}
