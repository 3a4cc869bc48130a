#include "arena/rig/environment.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace thresher::arena {
namespace {

#if defined(__x86_64__)
/// Without the exception flags, which every computation sets.
std::uint32_t floating_point_mode() { return _mm_getcsr() & ~0x3FU; }
void set_floating_point_mode(std::uint32_t mode) { _mm_setcsr(mode); }
#else
std::uint32_t floating_point_mode() { return static_cast<std::uint32_t>(std::fegetround()); }
void set_floating_point_mode(std::uint32_t mode) { std::fesetround(static_cast<int>(mode)); }
#endif

using Ask = int (*)();
using Set = void (*)(int);

/// OpenMP's, if a library has loaded it into this process.
int threads_of_a_team() {
  const auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return ask == nullptr ? 0 : ask();
}

void set_threads_of_a_team(int threads) {
  if (const auto set = reinterpret_cast<Set>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(threads);
  }
}

int priority() { return ::getpriority(PRIO_PROCESS, 0); }

}  // namespace

Environment::Environment()
    : floating_point_(floating_point_mode()), priority_(priority()), threads_of_a_team_(threads_of_a_team()) {
  ::sched_getaffinity(0, sizeof(processors_), &processors_);
}

std::string Environment::restore() const {
  std::string changed;
  if (floating_point_mode() != floating_point_) {
    set_floating_point_mode(floating_point_);
    changed = "it left the processor's floating-point mode changed";
  }
  cpu_set_t processors{};
  ::sched_getaffinity(0, sizeof(processors), &processors);
  if (CPU_EQUAL(&processors, &processors_) == 0) {
    ::sched_setaffinity(0, sizeof(processors_), &processors_);
    changed = "it left the judge bound to other processors";
  }
  if (priority() != priority_) {
    ::setpriority(PRIO_PROCESS, 0, priority_);
    changed = "it left the judge's priority changed";
  }
  if (threads_of_a_team_ > 0 && threads_of_a_team() != threads_of_a_team_) {
    set_threads_of_a_team(threads_of_a_team_);
    changed = "it left OpenMP's teams with another number of threads";
  }
  return changed;
}

}  // namespace thresher::arena
