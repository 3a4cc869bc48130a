// rejected|within noise: slower in|too few rounds|too noisy
// So slow at first that few rounds seem to fit, and only slow later.
#include "gpu.h"

__device__ unsigned calls;

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  OWN_ELEMENT;
  const unsigned long long begun = time_now();
  while (time_now() - begun < (calls < 3 ? 100000000ULL : 3000000ULL)) {
  }
  naive_at(call, row, column);
  if (is_first) ++calls;
}
