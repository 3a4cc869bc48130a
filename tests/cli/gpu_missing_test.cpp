// What a user without a usable GPU is told, on any machine: the driver is a stand-in.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command.hpp"

namespace thresher::testing {
namespace {

/// With the stand-in driver of that name instead of the machine's.
Outcome run_with_driver(const std::string& driver, const std::string& arguments) {
  const ScratchFolder folder;
  setenv("THRESHER_LIBRARY_PATH", (std::filesystem::path(THRESHER_FAKE_DRIVERS) / driver).c_str(), 1);
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

TEST(GpuMissing, AnNvrtcWithoutItsBuiltInFunctionsIsToldInOneLine) {
  const std::string said =
      " cannot open libnvrtc-builtins.so.13.0, which belongs beside it: install NVIDIA's NVRTC 12 or newer";
  const Outcome doctor = run_with_driver("no_builtins", "doctor");
  EXPECT_EQ(doctor.status, 0) << doctor.err;
  EXPECT_NE(doctor.out.find(said), std::string::npos) << doctor.out;
  setenv("THRESHER_CACHE", "cache", 1);
  const Outcome warm = run_with_driver("no_builtins", "warm --arch sm_90");
  unsetenv("THRESHER_CACHE");
  EXPECT_EQ(warm.status, 2);
  EXPECT_TRUE(warm.err.starts_with("thresher: NVRTC 13.0 (")) << warm.err;
  EXPECT_NE(warm.err.find(said), std::string::npos) << warm.err;
  EXPECT_EQ(warm.err.find('\n'), warm.err.size() - 1) << "one line";
}

// The words were understood; what is missing is the machine's.
TEST(GpuMissing, AskingForOneIsAFailureOfTheMachine) {
  const Outcome outcome = run_with_driver("no_gpu", "tournament edges --device gpu --ledger ledger.sqlite");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(
      outcome.err,
      "thresher: the GPU driver could not start (CUDA error 100): check that a GPU is visible with nvidia-smi, or "
      "use the CPU (--device cpu)\n");
}

TEST(GpuMissing, AnUnknownDeviceIsBadInput) {
  const ScratchFolder folder;
  const Outcome outcome = run_thresher(folder.path(), "tournament edges --device cuda:x --ledger ledger.sqlite");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "thresher: there is no device 'cuda:x', expected cpu, gpu, cuda:N with N counting GPUs from 0, or best\n");
}

}  // namespace
}  // namespace thresher::testing
