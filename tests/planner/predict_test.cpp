#include "planner/predict.hpp"

#include <gtest/gtest.h>

#include "planner/rank.hpp"

namespace thresher::planner {
namespace {

DualGemmProblem problem_of(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168, Format b = Format::nvfp4) {
  return {.m = m, .n = n, .k = k, .a = Format::fp16, .b = b, .out = Format::fp16};
}

Prediction predicted(const DualGemmProblem& problem, std::string_view config, std::string_view device = "H200") {
  return predict(problem, parse_config(config), device_spec(device));
}

// The origin's first sure win: more stages. 30 % slower, measured.
TEST(Predict, MoreStagesDoNotHelpAComputeBoundShape) {
  const double three = predicted(problem_of(256), "128x128x128 stages=3").us();
  const double four = predicted(problem_of(256), "128x128x128 stages=4").us();
  const double five = predicted(problem_of(256), "128x128x128 stages=5").us();
  EXPECT_DOUBLE_EQ(three, four);
  EXPECT_DOUBLE_EQ(four, five);
  EXPECT_EQ(predicted(problem_of(256), "128x128x128 stages=4").bound, Bound::matrix);
}

TEST(Predict, TooFewStagesLeaveTheLatencyOfLoadsVisible) {
  const Prediction two = predicted(problem_of(256), "fast 128x64x64 stages=2");
  EXPECT_GT(two.us(), 1.2 * predicted(problem_of(256), "fast 128x64x64 stages=8").us());
  EXPECT_EQ(two.bound, Bound::memory);
}

// More stages that cost the second block on a multiprocessor make a kernel slower, not faster.
TEST(Predict, StagesThatCostASecondBlockLose) {
  EXPECT_GT(predicted(problem_of(1, 14336, 4096), "128x8x128 stages=16 blocks=1").us(),
            predicted(problem_of(1, 14336, 4096), "128x8x128 stages=6 blocks=2").us());
}

// The origin ran 40 to 64 tokens in tiles of 128 rows.
TEST(Predict, FewTokensInTilesOf128RowsWasteHalfOfTheProducts) {
  for (const std::int64_t m : {40, 48, 64}) {
    const Prediction prediction =
        predicted(problem_of(m, 4096, 7168, Format::fp16), "128x128x64 tokens_as_rows stages=6");
    EXPECT_NEAR(prediction.useful_share, static_cast<double>(m) / 128, 1e-9);
    EXPECT_LE(prediction.useful_share, 0.5);
    EXPECT_NE(prediction.why.find("% of the products useful"), std::string::npos);
  }
  EXPECT_NEAR(predicted(problem_of(40), "128x40x128 stages=6").useful_share, 1.0, 1e-9);
}

// The origin claimed 12–15 % for a TMA-store epilogue, later 0–5 %: no more than the epilogue's own share.
TEST(Predict, ATmaStoreEpilogueGivesBackNoMoreThanTheEpiloguesShare) {
  for (const std::int64_t m : {128, 256, 512}) {
    const Prediction simt = predicted(problem_of(m), "128x128x128 stages=4");
    const Prediction tma = predicted(problem_of(m), "128x128x128 stages=4 tma");
    const double gain = simt.us() / tma.us() - 1;
    EXPECT_LT(gain, simt.epilogue_share() / (1 - simt.epilogue_share()));
    EXPECT_LT(gain, 0.05);
    EXPECT_GT(gain, -0.05);
    EXPECT_LT(simt.epilogue_share(), 0.12);
  }
}

TEST(Predict, PartsAddUpToTheTimeAndTheFloorIsBelowIt) {
  for (const DeviceSpec& device : device_specs()) {
    for (const std::int64_t m : {1, 40, 256, 2048}) {
      const DualGemmProblem problem = problem_of(m);
      for (const auto& choice : rank(problem, dual_gemm_candidates(problem, device), device).choices) {
        const Prediction& prediction = choice.prediction;
        EXPECT_NEAR(prediction.us(), prediction.parts.total_us(), 1e-9);
        EXPECT_GE(prediction.us(), floor_us(problem, matrix_type(problem, choice.config, device), device))
            << text(choice.config);
        EXPECT_GT(prediction.busy_share, 0);
        EXPECT_LE(prediction.busy_share, 1 + 1e-9) << text(choice.config);
        EXPECT_LE(prediction.useful_share, 1 + 1e-9) << text(choice.config);
      }
    }
  }
}

TEST(Predict, TimeGrowsWithEveryDimension) {
  const std::string_view config = "128x64x128 stages=6";
  const double base = predicted(problem_of(64, 4096, 4096), config).us();
  EXPECT_GE(predicted(problem_of(256, 4096, 4096), config).us(), base);
  EXPECT_GT(predicted(problem_of(64, 16384, 4096), config).us(), base);
  EXPECT_GT(predicted(problem_of(64, 4096, 8192), config).us(), base);
}

TEST(Predict, AHotCardIsSlowerWhereTheMatrixUnitBounds) {
  const DualGemmConfig config = parse_config("128x128x128 stages=4");
  const double burst = predict(problem_of(256), config, device_spec("H200"), {}, Clocks::burst).us();
  const double sustained = predict(problem_of(256), config, device_spec("H200"), {}, Clocks::sustained).us();
  EXPECT_NEAR(sustained / burst, device_spec("H200").burst_clock_ghz / device_spec("H200").sustained_clock_ghz, 0.03);
}

// N = 3072 in tiles of 128 rows covers 73 % of the multiprocessors.
TEST(Predict, WaveQuantisationIsSeen) {
  const Prediction uneven = predicted(problem_of(256, 3072, 4096), "128x128x128 stages=4");
  EXPECT_NEAR(uneven.busy_share, 96.0 / 132, 1e-9);
  EXPECT_EQ(uneven.bound, Bound::waves);
  EXPECT_LT(predicted(problem_of(256, 3072, 4096), "192x128x128 stages=4 math_warpgroups=3 cluster=2 split_k=2").us(),
            uneven.us());
}

TEST(Predict, DecodeIsBoundByConversionOrMemoryNotByProducts) {
  const Prediction decode = predicted(problem_of(1, 14336, 4096), "128x8x128 stages=6 blocks=2");
  EXPECT_TRUE(decode.bound == Bound::issue || decode.bound == Bound::memory) << decode.why;
}

TEST(Predict, TwoPassPaysForConvertingWeightsAtEveryCall) {
  const double converted = predicted(problem_of(256), "two_pass").us();
  const double plain = predicted(problem_of(256, 4096, 7168, Format::fp16), "two_pass").us();
  EXPECT_GT(converted, 1.5 * plain);
}

TEST(Predict, SaysWhenTheDeviceWasNeverMeasured) {
  const Prediction there = predicted(problem_of(256), "two_pass", "H200");
  EXPECT_TRUE(there.calibrated);
  const Prediction elsewhere =
      predicted(problem_of(256, 4096, 7168, Format::fp16), "128x128x64 tokens_as_rows", "H100");
  EXPECT_FALSE(elsewhere.calibrated);
  EXPECT_NE(elsewhere.why.find("never measured on a H100"), std::string::npos);
}

}  // namespace
}  // namespace thresher::planner
