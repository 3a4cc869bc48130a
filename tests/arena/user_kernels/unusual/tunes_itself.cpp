// Its first calls try four ways of doing the same with a clock of their own; later ones take the fastest.
#include <time.h>

#include "naive_kernel.h"

static double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sums in order, whatever the block is: the same bits. */
static void in_blocks(const thresher_own_dual_gemm* call, long long block) {
  for (long long first = 0; first < call->n; first += block)
    for (long long row = 0; row < call->m; ++row)
      for (long long column = first; column < first + block && column < call->n; ++column)
        thresher_own_store(call, row, column, naive_element(call, row, column));
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static const long long blocks[4] = {1, 8, 64, 512};
  static double took_s[4];
  static int calls = 0, best = 0;
  if (calls < 12) {
    const int tried = calls++ % 4;
    const double begun_s = now_s();
    for (int times = 0; times < 3; ++times) in_blocks(call, blocks[tried]);
    took_s[tried] += now_s() - begun_s;
    for (int i = 0; i < 4; ++i)
      if (took_s[i] < took_s[best]) best = i;
    return;
  }
  in_blocks(call, blocks[best]);
}
