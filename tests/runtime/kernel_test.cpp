// Kernels on a driver that runs nothing (fake_driver), so that this is tested without a GPU too.
#include "runtime/kernel.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

class OnFakeDriver : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("THRESHER_LIBRARY_PATH", THRESHER_FAKE_DRIVER, 1);
    ASSERT_EQ(driver_status().problem, "");
  }

  /// A handle of the caller's own on the one function of that name.
  static Kernel kernel(const std::string& name) { return Module(0, std::as_bytes(std::span("cubin"))).kernel(name); }

  static void launch(const Kernel& kernel, std::uint32_t shared_bytes) {
    LaunchConfig config;
    config.grid = {132, 1, 1};
    config.block = {256, 1, 1};
    config.dynamic_shared_bytes = shared_bytes;
    kernel.launch(config, {});
  }
};

/// Attention over pages keeps a table of all sequences in shared memory, so that plans for many and for few sequences
/// ask for different sizes of one function: the plan for few must not take away what the plan for many has asked for.
TEST_F(OnFakeDriver, APlanWithLessSharedMemoryLeavesThatOfAnother) {
  const Kernel many = kernel("stream_k");
  many.allow_dynamic_shared(214944);
  const Kernel few = kernel("stream_k");
  few.allow_dynamic_shared(213936);
  launch(few, 213936);
  launch(many, 214944);
}

TEST_F(OnFakeDriver, ThreadsThatAskAtOnceAllGetWhatTheyAskedFor) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      for (std::uint32_t round = 0; round < 200; ++round) {
        const Kernel own = kernel("shared");
        const std::uint32_t bytes = 50000 + 1000 * ((i + round) % 8);
        own.allow_dynamic_shared(bytes);
        launch(own, bytes);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(OnFakeDriver, MoreThanABlockHasIsRefused) {
  const Kernel greedy = kernel("greedy");
  EXPECT_THROW(greedy.allow_dynamic_shared(232449), Error);
  EXPECT_THROW(launch(greedy, 49153), Error);
  EXPECT_NO_THROW(launch(greedy, 49152));
}

}  // namespace
}  // namespace thresher::runtime
