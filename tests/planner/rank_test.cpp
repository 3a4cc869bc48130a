#include "planner/rank.hpp"

#include <gtest/gtest.h>

namespace thresher::planner {
namespace {

DualGemmProblem problem_of(std::int64_t m, Format a, Format b) {
  return {.m = m, .n = 4096, .k = 7168, .a = a, .b = b, .out = Format::fp16};
}

TEST(Rank, EveryDeviceHasAFusedChoiceForEveryFormatAndItIsSorted) {
  for (const DeviceSpec& device : device_specs()) {
    for (const Format a : {Format::fp16, Format::nvfp4}) {
      for (const Format b : {Format::fp16, Format::nvfp4}) {
        for (const std::int64_t m : {1, 40, 128, 512}) {
          if (a == Format::nvfp4 && b == Format::fp16) {
            continue;
          }
          const DualGemmProblem problem = problem_of(m, a, b);
          const DualGemmRanking ranking = rank(problem, dual_gemm_candidates(problem, device), device);
          ASSERT_FALSE(ranking.choices.empty()) << device.name;
          if (device.calibrated || b == Format::nvfp4) {
            EXPECT_NE(ranking.choices.front().config.strategy, Strategy::two_pass)
                << device.name << " m=" << m << " " << name(a) << "/" << name(b);
          }
          EXPECT_GT(ranking.choices.size(), 3U);
          for (std::size_t i = 1; i < ranking.choices.size(); ++i) {
            EXPECT_LE(ranking.choices[i - 1].prediction.us(), ranking.choices[i].prediction.us());
          }
        }
      }
    }
  }
}

TEST(Rank, RefusedContestantsKeepTheirReasons) {
  const DualGemmProblem problem = problem_of(256, Format::fp16, Format::nvfp4);
  const std::vector<DualGemmConfig> candidates{parse_config("128x256x128 stages=9"),
                                               parse_config("128x128x128 stages=4")};
  const DualGemmRanking ranking = rank(problem, candidates, device_spec("H200"));
  ASSERT_EQ(ranking.refused.size(), 1U);
  EXPECT_EQ(ranking.refused[0].config, candidates[0]);
  EXPECT_FALSE(ranking.refused[0].obstacles.empty());
  ASSERT_EQ(ranking.choices.size(), 1U);
  EXPECT_FALSE(ranking.choices[0].prediction.why.empty());
}

TEST(Rank, IsAPureFunction) {
  const DualGemmProblem problem = problem_of(40, Format::fp16, Format::nvfp4);
  const DeviceSpec& device = device_spec("H200");
  const std::vector<DualGemmConfig> candidates = dual_gemm_candidates(problem, device);
  const DualGemmRanking first = rank(problem, candidates, device);
  const DualGemmRanking second = rank(problem, candidates, device);
  ASSERT_EQ(first.choices.size(), second.choices.size());
  for (std::size_t i = 0; i < first.choices.size(); ++i) {
    EXPECT_EQ(first.choices[i].config, second.choices[i].config);
    EXPECT_EQ(first.choices[i].prediction.us(), second.choices[i].prediction.us());
  }
}

}  // namespace
}  // namespace thresher::planner
