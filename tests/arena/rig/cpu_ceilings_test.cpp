#include "arena/rig/cpu_ceilings.hpp"

#include <gtest/gtest.h>

#include "arena/rig/cpu_clock.hpp"

namespace thresher::arena {
namespace {

TEST(CpuCeilings, PeakIsNotBelowWhatOurOwnProductReaches) {
  const Ceilings ceilings = measure_cpu_ceilings();
  EXPECT_GT(ceilings.sustained_operations_per_s, 0);
  if (ceilings.peak_operations_per_s > 0) {
    EXPECT_GE(ceilings.peak_operations_per_s, ceilings.sustained_operations_per_s) << ceilings.method;
  }
}

TEST(CpuCeilings, NoCpuClockIsMeasuredThatNoCpuHas) {
  const double mhz = measure_cpu_clock_mhz();
  EXPECT_GT(mhz, 0);
  EXPECT_LT(mhz, 9000);
}

}  // namespace
}  // namespace thresher::arena
