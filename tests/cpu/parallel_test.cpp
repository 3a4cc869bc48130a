#include "cpu/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace thresher::cpu {
namespace {

TEST(CpuParallel, EveryIndexIsTakenOnce) {
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> taken(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](std::int64_t index, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++taken[static_cast<std::size_t>(index)];
      });
      for (const std::atomic<int>& times : taken) {
        EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST(CpuParallel, BodiesThatRunAtOnceHaveThreadsOfTheirOwn) {
  constexpr int threads = 4;
  std::latch all_are_inside(threads);
  std::array<std::atomic<int>, threads> bodies{};
  parallel_for(threads, threads, [&](std::int64_t, int thread) {
    ++bodies[static_cast<std::size_t>(thread)];
    all_are_inside.arrive_and_wait();
  });
  for (const std::atomic<int>& of_thread : bodies) {
    EXPECT_EQ(of_thread, 1);
  }
}

TEST(CpuParallel, EndsWhenEveryBodyHasEnded) {
  std::latch both_are_inside(2);
  std::atomic<int> ended = 0;
  parallel_for(2, 2, [&](std::int64_t, int thread) {
    both_are_inside.arrive_and_wait();
    if (thread == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the caller's own body has ended by then
    }
    ++ended;
  });
  EXPECT_EQ(ended, 2);
}

TEST(CpuParallel, CallersDoNotDisturbEachOther) {
  constexpr int callers = 4;
  constexpr int loops = 200;
  std::array<std::atomic<int>, callers> taken{};
  {
    std::vector<std::jthread> all;
    for (int caller = 0; caller < callers; ++caller) {
      all.emplace_back([&taken, caller] {
        for (int loop = 0; loop < loops; ++loop) {
          parallel_for(3, 10, [&](std::int64_t, int) { ++taken[static_cast<std::size_t>(caller)]; });
        }
      });
    }
  }
  for (const std::atomic<int>& of_one : taken) {
    EXPECT_EQ(of_one, 10 * loops);
  }
}

TEST(CpuParallel, AnExceptionReachesTheCaller) {
  for (const int threads : {1, 3}) {
    EXPECT_THROW(parallel_for(threads, 100,
                              [](std::int64_t index, int) {
                                if (index == 17) {
                                  throw std::runtime_error("17");
                                }
                              }),
                 std::runtime_error);
  }
}

TEST(CpuParallel, BodiesRoundToNearestWhateverTheCallerDoes) {
  std::fesetround(FE_UPWARD);
  for (const int threads : {1, 2}) {
    parallel_for(threads, 8, [](std::int64_t, int) { EXPECT_EQ(std::fegetround(), FE_TONEAREST); });
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
  }
  std::fesetround(FE_TONEAREST);
}

/// A child that is forked after a loop, by a thread that ran it, has none of the threads that helped.
TEST(CpuParallel, AForkedChildHasThreadsOfItsOwn) {
  const auto all_are_taken = [] {
    std::atomic<int> taken = 0;
    parallel_for(3, 100, [&](std::int64_t, int) { ++taken; });
    return taken == 100;
  };
  EXPECT_TRUE(all_are_taken());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // ends one that waits for threads which are not there
    _exit(all_are_taken() && all_are_taken() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(all_are_taken());
}

TEST(CpuParallel, ZeroThreadsMeansSome) {
  EXPECT_GE(resolve_threads(0), 1);
  EXPECT_EQ(resolve_threads(3), 3);
}

}  // namespace
}  // namespace thresher::cpu
