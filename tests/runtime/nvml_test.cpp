#include "runtime/nvml.hpp"

#include <gtest/gtest.h>

#include "runtime/driver.hpp"

namespace thresher::runtime {
namespace {

TEST(ThrottleWords, NameEveryReasonButIdleness) {
  EXPECT_TRUE(throttle_words(0).empty());
  EXPECT_TRUE(throttle_words(0x1).empty());  // idle
  EXPECT_EQ(throttle_words(0x4), std::vector<std::string>{"power cap"});
  EXPECT_EQ(throttle_words(0x4 | 0x20 | 0x80),
            (std::vector<std::string>{"power cap", "thermal slowdown", "hardware power brake"}));
}

TEST(GpuState, IsEmptyWithoutNvmlAndNeverThrows) {
  const GpuState state = gpu_state(0);
  if (!nvml_status().problem.empty() || !driver_status().problem.empty()) {
    EXPECT_FALSE(state.power_w.has_value());
    EXPECT_FALSE(state.multiprocessor_clock_mhz.has_value());
    EXPECT_TRUE(state.throttle_reasons.empty());
  }
}

}  // namespace
}  // namespace thresher::runtime
