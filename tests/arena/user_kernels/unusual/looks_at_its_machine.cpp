// Reads what the system says of the processor, takes a signal for itself, pins itself and puts it right again.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "naive_kernel.h"

static volatile sig_atomic_t signals;
static void count(int) { signals = signals + 1; }

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static bool is_known = false;
  if (!is_known) {
    is_known = true;
    char line[256];
    FILE* const file = fopen("/proc/cpuinfo", "r");
    while (file != nullptr && fgets(line, sizeof line, file) != nullptr) {
    }
    if (file != nullptr) fclose(file);
    signal(SIGUSR1, count);
    raise(SIGUSR1);
  }
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  naive(call);
  sched_setaffinity(0, sizeof all, &all);
}
