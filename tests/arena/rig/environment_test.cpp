// What a contestant leaves changed is put right and told.
#include "arena/rig/environment.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace thresher::arena {
namespace {

TEST(Environment, NothingIsSaidOfWhatIsAsItWas) {
  const Environment before;
  EXPECT_EQ(before.restore(), "");
}

TEST(Environment, AnotherSizeOfOpenMPsTeamsIsPutRight) {
  const auto ask = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (ask == nullptr || set == nullptr) {
    GTEST_SKIP() << "no OpenMP in this process";
  }
  const Environment before;
  const int threads = ask();
  set(threads + 3);
  EXPECT_EQ(before.restore(), "it left OpenMP's teams with another number of threads");
  EXPECT_EQ(ask(), threads);
  EXPECT_EQ(before.restore(), "");
}

TEST(Environment, OtherProcessorsArePutRight) {
  cpu_set_t all{};
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) {
    GTEST_SKIP() << "one processor";
  }
  const Environment before;
  cpu_set_t one{};
  for (int processor = 0; CPU_COUNT(&one) == 0; ++processor) {
    if (CPU_ISSET(processor, &all)) {
      CPU_SET(processor, &one);
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(before.restore(), "it left the judge bound to other processors");
  cpu_set_t now{};
  ASSERT_EQ(::sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_TRUE(CPU_EQUAL(&now, &all));
}

#if defined(__x86_64__)
TEST(Environment, FlushedSubnormalsArePutRight) {
  const Environment before;
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040U);
  EXPECT_EQ(before.restore(), "it left the processor's floating-point mode changed");
  EXPECT_EQ(_mm_getcsr() & 0x8040U, mode & 0x8040U);
}
#endif

}  // namespace
}  // namespace thresher::arena
