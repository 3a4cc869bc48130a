#include "cpu/parallel.hpp"
#include "cpu/team.hpp"

// The OpenMP runtime is called as the code that a compiler makes of `#pragma omp parallel` calls it. So every compiler
// uses the runtime that oneDNN is linked with, whichever its own would be, and needs no OpenMP of its own.
extern "C" {
int omp_get_max_threads();
int omp_get_thread_num();
void omp_set_num_threads(int threads);
void GOMP_parallel(void (*body)(void*), void* shared, unsigned threads, unsigned flags);
}

namespace thresher::cpu {
namespace {

struct Region {
  void (*body)(void* shared, int thread);
  void* shared;
};

}  // namespace

int usual_threads() { return omp_get_max_threads(); }

void run_team(int threads, void (*body)(void* shared, int thread), void* shared) {
  Region region{body, shared};
  GOMP_parallel(
      [](void* argument) {
        const Region& of_team = *static_cast<const Region*>(argument);
        of_team.body(of_team.shared, omp_get_thread_num());
      },
      &region, static_cast<unsigned>(threads), 0);
}

OneDnnThreads::OneDnnThreads(int threads) : previous_(omp_get_max_threads()) { omp_set_num_threads(threads); }
OneDnnThreads::~OneDnnThreads() { omp_set_num_threads(previous_); }

}  // namespace thresher::cpu
