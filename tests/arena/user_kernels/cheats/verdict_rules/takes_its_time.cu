// rejected|within noise: slower in|too few rounds|too noisy
// A hundred times slower, in few rounds.
#include "gpu.h"

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  const unsigned long long begun = time_now();
  while (time_now() - begun < 3000000ULL) {
  }
  naive_at(call, row, column);
}
