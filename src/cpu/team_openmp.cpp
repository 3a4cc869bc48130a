#include <pthread.h>

#include "cpu/parallel.hpp"
#include "cpu/team.hpp"

// Calls the OpenMP runtime as the compiler's code for `#pragma omp parallel` does. So every compiler uses the runtime
// that oneDNN is linked with, and needs no OpenMP of its own.
extern "C" {
int omp_get_max_threads();
int omp_get_thread_num();
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void*), void* shared, unsigned threads, unsigned flags);
[[gnu::weak]] int omp_pause_resource_all(int kind);  // OpenMP 5: GCC 9 and newer
}

namespace thresher::cpu {
namespace {

struct Region {
  void (*body)(void* shared, int thread);
  void* shared;
};

/// A forked child lacks the threads that its parent's thread keeps for the next region, and would wait for them
/// forever. So they are ended before a fork; the next region, in parent and child, starts new ones.
void end_kept_threads() {
  constexpr int hard = 2;  // omp_pause_hard
  if (omp_pause_resource_all != nullptr) {
    omp_pause_resource_all(hard);
  }
}

void be_ready_for_forks() {
  [[maybe_unused]] static const int registered = ::pthread_atfork(&end_kept_threads, nullptr, nullptr);
}

}  // namespace

int usual_threads() { return omp_get_max_threads(); }

void run_team(int threads, void (*body)(void* shared, int thread), void* shared) {
  be_ready_for_forks();
  Region region{body, shared};
  GOMP_parallel(
      [](void* argument) {
        const Region& of_team = *static_cast<const Region*>(argument);
        of_team.body(of_team.shared, omp_get_thread_num());
      },
      &region, static_cast<unsigned>(threads), 0);
}

OneDnnThreads::OneDnnThreads(int threads) : previous_(omp_get_max_threads()) {
  be_ready_for_forks();
  omp_set_num_threads(threads);
}
OneDnnThreads::~OneDnnThreads() { omp_set_num_threads(previous_); }

}  // namespace thresher::cpu
