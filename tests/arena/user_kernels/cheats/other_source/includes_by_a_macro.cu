// fails at compiles: includes a file by a macro|macro
// The name of the file that the kernel is in depends on what the compiler defines.
#define BESIDE "naive_kernel.h"
#include BESIDE

extern "C" __global__ void mine(thresher_own_dual_gemm call) {
  thresher_own_store(&call, 0, 0, naive_element(&call, 0, 0));
}
