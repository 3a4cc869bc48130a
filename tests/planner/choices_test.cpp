// Every candidate can be launched.
#include <gtest/gtest.h>

#include "planner/choose.hpp"
#include "strategies/dual_gemm/registry.hpp"

namespace thresher::planner {
namespace {

// One number says what a launch takes and what is in the way of it.
TEST(PlannedChoices, EveryCandidatesLaunchesFitTheDevice) {
  const DeviceSpec& device = device_spec("H200");
  for (const Format b : {Format::fp16, Format::nvfp4}) {
    const DualGemmProblem problem{.m = 300, .n = 4096, .k = 7168, .a = Format::fp16, .b = b, .out = Format::fp16};
    const Choices choices =
        choose<DualGemmProblem>(strategies::dual_gemm::strategies_of(DeviceKind::cuda), problem, {}, device);
    for (const PlannedChoice& choice : choices.ranked) {
      for (const strategies::Step& step : choice.call.steps) {
        if (const auto* const launch = std::get_if<strategies::KernelLaunch>(&step)) {
          EXPECT_LE(launch->shared_bytes, static_cast<std::uint32_t>(device.shared_bytes_per_block));
          EXPECT_LE(launch->block.x, static_cast<std::uint32_t>(device.max_threads_per_block));
        }
      }
    }
  }
}

}  // namespace
}  // namespace thresher::planner
