#include "reference/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace thresher::reference {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (const int threads : {0, 1, 2, 7}) {
    for (const std::int64_t count : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(count, threads, [&](std::int64_t index) { ++calls[static_cast<std::size_t>(index)]; });
      for (const std::atomic<int>& call : calls) {
        ASSERT_EQ(call, 1);
      }
    }
  }
}

TEST(ParallelFor, AnExceptionReachesTheCaller) {
  EXPECT_THROW(parallel_for(100, 4,
                            [](std::int64_t index) {
                              if (index == 50) {
                                throw std::runtime_error("fifty");
                              }
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace thresher::reference
