// rejected: slower in
// A hundred times slower, in few rounds.
#include <unistd.h>

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
  usleep(4000);
  naive(call);
}
