// [kernel] options = ["-pthread"]
// Threads that stay, and look for work a while before they sleep, as OpenMP's do.
#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "naive_kernel.h"

static std::atomic<const thresher_own_dual_gemm*> asked;
static std::atomic<unsigned> round_number, done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static void* work(void*) {
  for (unsigned seen = 0;;) {
    for (int look = 0; look < 2000 && round_number.load() == seen; ++look) sched_yield();
    pthread_mutex_lock(&mutex);
    while (round_number.load() == seen) pthread_cond_wait(&more, &mutex);
    seen = round_number.load();
    pthread_mutex_unlock(&mutex);
    const thresher_own_dual_gemm* const call = asked.load();
    for (long long row = 1; row < call->m; row += 2) naive_row(call, row);
    done.store(seen);
  }
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  static pthread_t thread;
  static const bool is_there = pthread_create(&thread, nullptr, work, nullptr) == 0;
  asked.store(call);
  pthread_mutex_lock(&mutex);
  const unsigned now = ++round_number;
  pthread_cond_signal(&more);
  pthread_mutex_unlock(&mutex);
  for (long long row = 0; row < call->m; row += 2) naive_row(call, row);
  if (!is_there)
    for (long long row = 1; row < call->m; row += 2) naive_row(call, row);
  while (is_there && done.load() != now) sched_yield();
}
