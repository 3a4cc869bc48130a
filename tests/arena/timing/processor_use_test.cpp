#include "arena/timing/processor_use.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "arena/timing/wall_clock.hpp"
#include "runtime/process.hpp"

namespace thresher::arena {
namespace {

constexpr std::uint64_t ms = 1'000'000;  // in ns
constexpr double passed_us = 10'000;

/// Processes as /proc has them.
class ProcessorUse : public ::testing::Test {
 protected:
  void tell(pid_t process, pid_t thread, const std::string& schedstat) {
    const std::filesystem::path folder = folder_.path() / std::to_string(process) / "task" / std::to_string(thread);
    std::filesystem::create_directories(folder);
    if (!schedstat.empty()) {
      std::ofstream(folder / "schedstat") << schedstat << "\n";
    }
  }
  runtime::TemporaryFolder folder_;
};

TEST_F(ProcessorUse, EveryThreadIsRead) {
  tell(7, 7, "5000 20 3");
  tell(7, 9, "6000 70 4");
  const std::optional<ThreadUses> uses = thread_uses(7, folder_.path());
  ASSERT_TRUE(uses.has_value());
  ASSERT_EQ(uses->size(), 2U);
  EXPECT_EQ(uses->at(7).waited_ns, 20U);
  EXPECT_EQ(uses->at(9).ran_ns, 6000U);
  EXPECT_EQ(uses->at(9).runs, 4U);
}

TEST_F(ProcessorUse, WhereNobodyCountsNothingIsTold) {
  tell(7, 7, "");
  tell(8, 8, "not a number");
  for (const pid_t process : {7, 8, 9}) {
    EXPECT_FALSE(thread_uses(process, folder_.path()).has_value()) << process;
  }
}

TEST_F(ProcessorUse, AThreadThatEndsWhileItIsReadIsPassedOver) {
  tell(7, 7, "5000 20 3");
  tell(7, 9, "");
  const std::optional<ThreadUses> uses = thread_uses(7, folder_.path());
  ASSERT_TRUE(uses.has_value());
  EXPECT_EQ(uses->size(), 1U);
}

TEST(WaitedShare, WaitsOfAllThreadsAreCountedSinceTheFirstReading) {
  const ThreadUses before{{1, {5 * ms, 3 * ms, 10}}, {2, {5 * ms, 1 * ms, 10}}};
  const ThreadUses after{{1, {9 * ms, 5 * ms, 10}}, {2, {9 * ms, 2 * ms, 10}}};
  EXPECT_DOUBLE_EQ(waited_share(before, after, passed_us, 2).value(), 0.3);
}

TEST(WaitedShare, AThreadThatBeganMeanwhileCountsWhollyAndOneThatEndedNoMore) {
  const ThreadUses before{{1, {0, 0, 0}}, {2, {50 * ms, 50 * ms, 1}}};
  const ThreadUses after{{1, {1 * ms, 0, 0}}, {3, {1 * ms, 4 * ms, 0}}};
  EXPECT_DOUBLE_EQ(waited_share(before, after, passed_us, 4).value(), 0.4);
  const ThreadUses number_given_again{{1, {1 * ms, 0, 0}}, {2, {1 * ms, 5 * ms, 0}}};
  EXPECT_DOUBLE_EQ(waited_share(before, number_given_again, passed_us, 4).value(), 0.5);
}

TEST(WaitedShare, BeingWokenIsNoWaiting) {
  const ThreadUses before{{1, {0, 0, 0}}};
  const ThreadUses woken_often{{1, {1 * ms, 2 * ms, 40}}};
  EXPECT_DOUBLE_EQ(waited_share(before, woken_often, passed_us, 1).value(), 0);
  const ThreadUses woken_late{{1, {1 * ms, 3 * ms, 20}}};
  EXPECT_DOUBLE_EQ(waited_share(before, woken_late, passed_us, 1).value(), 0.2);
}

TEST(WaitedShare, ThreadsThatOutnumberTheProcessorsTellNothing) {
  ThreadUses after;
  for (pid_t thread = 1; thread <= 4; ++thread) {
    after[thread] = {5 * ms, 5 * ms, 1};
  }
  EXPECT_FALSE(waited_share({}, after, passed_us, 3).has_value());
  EXPECT_TRUE(waited_share({}, after, passed_us, 4).has_value());
  after[5] = {ms / 10, 0, 1};  // asleep nearly all of the time
  EXPECT_TRUE(waited_share({}, after, passed_us, 4).has_value());
}

/// Runs where the first of this thread's processors is, and nowhere else.
void share_one_processor() {
  cpu_set_t mine{};
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mine), &mine), 0);
  cpu_set_t first{};
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &mine)) {
      CPU_SET(processor, &first);
      break;
    }
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(first), &first), 0);
}

// However long it takes: who computes beside others on one processor waits for it sooner or later.
TEST(ProcessorWatch, AProcessBesideSpinningThreadsIsSeenToWait) {
  if (!thread_uses(0)) {
    EXPECT_NE(WallClock().unseen(), "");
    GTEST_SKIP() << WallClock().unseen();
  }
  EXPECT_EQ(WallClock().unseen(), "");
  std::atomic<bool> over = false;
  std::thread spinning([&] {
    share_one_processor();
    while (!over) {
    }
  });
  const pid_t child = ::fork();
  if (child == 0) {
    share_one_processor();
    for (volatile int forever = 1; forever != 0;) {
    }
  }
  std::optional<double> waited;
  while (waited.value_or(0) == 0) {
    const ProcessorWatch watch(child);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    waited = watch.waited();
  }
  over = true;
  spinning.join();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(*waited, 0);
  EXPECT_FALSE(ProcessorWatch(child).waited().has_value()) << "it has ended";
}

}  // namespace
}  // namespace thresher::arena
