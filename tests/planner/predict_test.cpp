#include "planner/predict.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "planner/choose.hpp"
#include "planner/planned.hpp"

namespace thresher::planner {
namespace {

using strategies::gemm::Product;
using testing::planned;
using testing::predicted;

DualGemmProblem problem_of(std::int64_t m, std::int64_t n = 4096, std::int64_t k = 7168, Format b = Format::nvfp4) {
  return {.m = m, .n = n, .k = k, .a = Format::fp16, .b = b, .out = Format::fp16};
}

Choices choices(const DualGemmProblem& problem, const DeviceSpec& device) {
  return choose<strategies::gemm::ProductProblem>(strategies::gemm::strategies_of(Product::dual_gemm, DeviceKind::cuda),
                                                  problem, {}, device);
}

// The origin's first sure win: more stages. 30 % slower, measured.
TEST(Predict, MoreStagesDoNotHelpAComputeBoundShape) {
  const Prediction three = predicted(problem_of(256), "packed", "block_tokens=128 stages=3");
  EXPECT_DOUBLE_EQ(three.us(), predicted(problem_of(256), "packed", "block_tokens=128 stages=4").us());
  EXPECT_DOUBLE_EQ(three.us(), predicted(problem_of(256), "packed", "block_tokens=128 stages=5").us());
  EXPECT_EQ(three.bound, Bound::matrix);
}

TEST(Predict, TooFewStagesLeaveTheLatencyOfLoadsVisible) {
  const std::string tile = "numerics=fast block_tokens=64 blocks_per_slot=1 ";
  const Prediction two = predicted(problem_of(256), "packed", tile + "stages=2");
  EXPECT_GT(two.us(), 1.2 * predicted(problem_of(256), "packed", tile + "stages=8").us());
  EXPECT_EQ(two.bound, Bound::memory);
}

// More stages that cost the second block on a multiprocessor make a kernel slower, not faster.
TEST(Predict, StagesThatCostASecondBlockLose) {
  const DualGemmProblem decode = problem_of(1, 14336, 4096);
  EXPECT_GT(predicted(decode, "packed", "block_tokens=8 stages=16 blocks_resident=1").us(),
            predicted(decode, "packed", "block_tokens=8 stages=6 blocks_resident=2").us());
}

// The origin ran 40 to 64 tokens in tiles of 128 rows.
TEST(Predict, FewTokensInTilesOf128RowsWasteHalfOfTheProducts) {
  for (const std::int64_t m : {40, 48, 64}) {
    const Prediction prediction = predicted(problem_of(m, 4096, 7168, Format::fp16), "interleaved", "block_outputs=64");
    EXPECT_NEAR(prediction.useful_share, static_cast<double>(m) / 128, 1e-9);
    EXPECT_LE(prediction.useful_share, 0.5);
    EXPECT_NE(prediction.why.find("% of the products useful"), std::string::npos);
  }
  EXPECT_NEAR(predicted(problem_of(64), "packed", "block_tokens=64").useful_share, 1.0, 1e-9);
}

// The origin claimed 12–15 % for a TMA-store epilogue, later 0–5 %: no more than the epilogue's own share.
TEST(Predict, ATmaStoreEpilogueGivesBackNoMoreThanTheEpiloguesShare) {
  for (const std::int64_t m : {128, 256, 512}) {
    const DualGemmProblem problem = problem_of(m, 4096, 7168, Format::fp16);
    const Prediction simt = predicted(problem, "interleaved", "block_outputs=64 epilogue=simt");
    const Prediction tma = predicted(problem, "interleaved", "block_outputs=64 epilogue=tma");
    const double gain = simt.us() / tma.us() - 1;
    const double share = simt.parts.epilogue_us / simt.us();
    EXPECT_LT(gain, share / (1 - share));
    EXPECT_LT(gain, 0.05);
    EXPECT_GT(gain, -0.05);
    EXPECT_LT(share, 0.12);
  }
}

// As many blocks as there are places take one round, one more takes another.
TEST(Predict, BlocksThatFillTheDeviceExactlyTakeNoRoundMore) {
  const std::int64_t places = device_spec("H200").multiprocessors;
  const auto fused = [&](std::int64_t n) {
    return predicted(problem_of(128, n, 7168, Format::fp16), "interleaved", "block_outputs=64");
  };
  EXPECT_EQ(fused(64 * places).blocks, places);
  EXPECT_EQ(fused(64 * places).rounds, 1);
  EXPECT_EQ(fused(64 * places + 8).rounds, 2);
  const Prediction products = predicted(problem_of(128, 256 * places, 7168, Format::fp16), "two_pass", "");
  EXPECT_EQ(products.blocks % places, 0);
  EXPECT_EQ(products.rounds, products.blocks / places);
}

// Two blocks of a pair share a multiprocessor that has places for both.
TEST(Predict, AClusterFillsAMultiprocessorBeforeTheNext) {
  strategies::TiledKernel kernel;
  kernel.step.matrix_operations = 2.0 * 64 * 64 * 64;
  kernel.blocks = 64;
  kernel.steps = 8;
  kernel.blocks_per_multiprocessor = 2;
  const auto rounds = [&] { return predict({.parts = {kernel}}, device_spec("H200")).rounds; };
  EXPECT_EQ(rounds(), 1);
  kernel.cluster = 2;
  EXPECT_EQ(rounds(), 2);
  kernel.blocks_per_multiprocessor = 1;
  EXPECT_EQ(rounds(), 1);
}

TEST(Predict, BlocksOfAMultiprocessorComeToTheEndsOfTilesTogether) {
  const DeviceSpec& device = device_spec("H200");
  strategies::TiledKernel kernel;
  kernel.step.instructions = 1000;
  kernel.blocks = 4 * device.multiprocessors;
  kernel.steps = 8;
  kernel.blocks_per_multiprocessor = 2;
  const auto main_us = [&] { return predict({.parts = {kernel}}, device).parts.main_us; };
  const double before_us = main_us();
  kernel.end_clocks = 1000 * device.burst_clock_ghz;
  EXPECT_NEAR(main_us(), before_us + 2, 1e-6);
}

TEST(Predict, PartsAddUpToTheTime) {
  for (const DeviceSpec& device : device_specs()) {
    for (const Format b : {Format::fp16, Format::nvfp4}) {
      for (const std::int64_t m : {1, 40, 256, 2048}) {
        for (const Choice& choice : choices(problem_of(m, 4096, 7168, b), device).ranked) {
          ASSERT_TRUE(choice.prediction) << choice.strategy;
          const Prediction& prediction = *choice.prediction;
          EXPECT_NEAR(prediction.us(), prediction.parts.total_us(), 1e-9);
          EXPECT_GT(prediction.busy_share, 0);
          EXPECT_LE(prediction.busy_share, 1 + 1e-9) << choice.knobs.text();
          EXPECT_LE(prediction.useful_share, 1 + 1e-9) << choice.knobs.text();
        }
      }
    }
  }
}

// Each was predicted as the last one alone.
TEST(Predict, KernelsOfOneCallAddUp) {
  const DeviceSpec device = device_spec("H200");
  const strategies::WorkModel small = planned(problem_of(16, 4096, 7168, Format::fp16), "interleaved", "").work;
  const strategies::WorkModel large = planned(problem_of(4096, 4096, 7168, Format::fp16), "interleaved", "").work;
  for (const auto& [first, second] : {std::pair(small, large), std::pair(large, small)}) {
    strategies::WorkModel both = first;
    both.parts.insert(both.parts.end(), second.parts.begin(), second.parts.end());
    const Prediction all = predict(both, device);
    EXPECT_NEAR(all.us(), predict(first, device).us() + predict(second, device).us(), 1e-9);
    EXPECT_EQ(all.bound, predict(large, device).bound);
    EXPECT_EQ(all.blocks, predict(first, device).blocks + predict(second, device).blocks);
    EXPECT_GT(all.useful_share, predict(small, device).useful_share);
    EXPECT_LT(all.useful_share, predict(large, device).useful_share);
    EXPECT_EQ(all.why.find("2 parts of "), 0U) << all.why;
  }
}

TEST(Predict, TilesOfOneLaunchStartOnce) {
  const DeviceSpec device = device_spec("H200");
  strategies::TiledKernel kernel{.blocks = 132, .steps = 100};
  const Prediction one = predict({{kernel}}, device);
  strategies::TiledKernel more = kernel;
  more.shares_launch = true;
  EXPECT_NEAR(predict({{kernel, more}}, device).us(), 2 * one.us() - one.parts.launch_us - one.parts.fill_us, 1e-9);
}

TEST(Predict, TimeGrowsWithEveryDimension) {
  const auto us = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return predicted(problem_of(m, n, k), "packed", "block_tokens=64 stages=6").us();
  };
  const double base = us(64, 4096, 4096);
  EXPECT_GE(us(256, 4096, 4096), base);
  EXPECT_GT(us(64, 16384, 4096), base);
  EXPECT_GT(us(64, 4096, 8192), base);
}

TEST(Predict, AHotCardIsSlowerWhereTheMatrixUnitBounds) {
  const double burst = predicted(problem_of(256), "packed", "block_tokens=128").us();
  const double sustained = predicted(problem_of(256), "packed", "block_tokens=128", "H200", Clocks::sustained).us();
  EXPECT_NEAR(sustained / burst, device_spec("H200").burst_clock_ghz / device_spec("H200").sustained_clock_ghz, 0.03);
}

// N = 3072 in tiles of 128 rows covers 73 % of the multiprocessors.
TEST(Predict, WaveQuantisationIsSeen) {
  const DualGemmProblem problem = problem_of(256, 3072, 4096);
  const Prediction uneven = predicted(problem, "packed", "block_tokens=128");
  EXPECT_NEAR(uneven.busy_share, 96.0 / 132, 1e-9);
  EXPECT_EQ(uneven.bound, Bound::waves);
  EXPECT_LT(predicted(problem, "packed", "block_tokens=128 math_warpgroups=3 split_k=2").us(), uneven.us());
}

TEST(Predict, DecodeIsBoundByConversionOrMemoryNotByProducts) {
  const Prediction decode = predicted(problem_of(1, 14336, 4096), "packed", "block_tokens=8 blocks_resident=2");
  EXPECT_TRUE(decode.bound == Bound::issue || decode.bound == Bound::memory) << decode.why;
}

TEST(Predict, TwoPassPaysForConvertingWeightsAtEveryCall) {
  EXPECT_GT(predicted(problem_of(256), "two_pass", "").us(),
            1.5 * predicted(problem_of(256, 4096, 7168, Format::fp16), "two_pass", "").us());
}

TEST(Predict, PreparingTheTokensIsPartOfTheCall) {
  DualGemmProblem problem = problem_of(256);
  EXPECT_EQ(predicted(problem, "packed", "").parts.passes_us, 0);
  problem.a = Format::nvfp4;
  const Prediction widened = predicted(problem, "packed", "");
  EXPECT_GT(widened.parts.passes_us, 0);
  EXPECT_NE(widened.why.find("; dequantizing the tokens"), std::string::npos) << widened.why;
}

// The knob changes the launch, and the prediction because the launch changes.
TEST(Predict, DependentLaunchIsPredictedWhereItIsLaunched) {
  const DualGemmProblem decode = problem_of(1, 14336, 4096, Format::fp16);
  for (const bool dependent : {false, true}) {
    const std::string knob = dependent ? "dependent_launch=true" : "dependent_launch=false";
    const strategies::PlannedCall call = testing::planned(decode, "interleaved", knob);
    EXPECT_EQ(std::get<strategies::KernelLaunch>(call.steps.back()).dependent, dependent);
    EXPECT_EQ(std::get<strategies::TiledKernel>(call.work.parts.back()).dependent_launch, dependent);
  }
  EXPECT_LT(predicted(decode, "interleaved", "dependent_launch=true").us(),
            predicted(decode, "interleaved", "dependent_launch=false").us());
}

TEST(Predict, SaysWhenTheDeviceWasNeverMeasured) {
  EXPECT_TRUE(predicted(problem_of(256), "two_pass", "").calibrated);
  const Prediction elsewhere = predicted(problem_of(256, 4096, 7168, Format::fp16), "interleaved", "", "H100");
  EXPECT_FALSE(elsewhere.calibrated);
  EXPECT_NE(elsewhere.why.find("never measured on a H100"), std::string::npos);
}

}  // namespace
}  // namespace thresher::planner
