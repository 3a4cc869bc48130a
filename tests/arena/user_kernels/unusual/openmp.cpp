// [kernel] options = ["-fopenmp", "-lgomp"]
// OpenMP with a schedule of its own, as many threads as there are processors.
#include <omp.h>

#include "naive_kernel.h"

extern "C" void mine(const thresher_own_dual_gemm* call) {
#pragma omp parallel for schedule(dynamic, 1) collapse(2)
  for (long long row = 0; row < call->m; ++row)
    for (long long block = 0; block < (call->n + 15) / 16; ++block)
      for (long long column = block * 16; column < block * 16 + 16 && column < call->n; ++column)
        thresher_own_store(call, row, column, naive_element(call, row, column));
}
