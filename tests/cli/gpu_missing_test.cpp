// What a user without a usable GPU is told, on any machine: the driver is a stand-in.
#include <gtest/gtest.h>

#include "cli/command.hpp"

namespace thresher::testing {
namespace {

/// With the stand-in driver of that name instead of the machine's.
Outcome run_with_driver(const std::string& driver, const std::string& arguments) {
  const ScratchFolder folder;
  setenv("THRESHER_LIBRARY_PATH", (std::string(THRESHER_FAKE_DRIVERS) + "/" + driver).c_str(), 1);
  const Outcome outcome = run_thresher(folder.path(), arguments);
  unsetenv("THRESHER_LIBRARY_PATH");
  return outcome;
}

TEST(GpuMissing, ADriverThatIsTooOldIsNamed) {
  const Outcome outcome = run_with_driver("old", "doctor");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("the GPU driver supports CUDA 11.8, Thresher needs 12.0 or newer: update the NVIDIA driver"),
      std::string::npos)
      << outcome.out;
}

TEST(GpuMissing, ADriverWithoutAGpuSaysSo) {
  const Outcome outcome = run_with_driver("no_gpu", "doctor");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("the GPU driver could not start (CUDA error 100): check that a GPU is visible with nvidia-smi"),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("operations run on "), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace thresher::testing
