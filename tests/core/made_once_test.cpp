#include "core/made_once.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace thresher {
namespace {

// Each maker waits until the other has begun: behind one lock for all keys this never ends.
TEST(OnceMap, TwoKeysAreMadeSideBySide) {
  OnceMap<std::string, int> table;
  std::latch both_have_begun(2);
  const auto make = [&](const char* key, int value) {
    EXPECT_EQ(table.get(key,
                        [&] {
                          both_have_begun.arrive_and_wait();
                          return value;
                        }),
              value);
  };
  const std::jthread one(make, "one", 1);
  const std::jthread two(make, "two", 2);
}

TEST(OnceMap, OneKeyIsMadeOnceForAllThreads) {
  OnceMap<int, int> table;
  std::atomic<int> made = 0;
  std::latch all_are_here(8);
  {
    std::vector<std::jthread> askers;
    for (int asker = 0; asker < 8; ++asker) {
      askers.emplace_back([&] {
        all_are_here.arrive_and_wait();
        EXPECT_EQ(table.get(7, [&] { return ++made; }), 1);
      });
    }
  }
  EXPECT_EQ(made, 1);
}

TEST(OnceMap, AFailureIsNotKept) {
  OnceMap<int, int> table;
  EXPECT_THROW((void)table.get(1, []() -> int { throw std::runtime_error("no compiler"); }), std::runtime_error);
  const int& value = table.get(1, [] { return 5; });
  EXPECT_EQ(value, 5);
  EXPECT_EQ(&table.get(1, [] { return 6; }), &value) << "kept where it lies";
}

}  // namespace
}  // namespace thresher
