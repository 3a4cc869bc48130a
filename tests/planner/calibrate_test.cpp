#include "planner/calibrate.hpp"

#include <gtest/gtest.h>

#include "planner/measured.hpp"
#include "planner/planned.hpp"
#include "strategies/attention/tile_work.hpp"
#include "thresher/error.hpp"

namespace thresher::planner {
namespace {

std::vector<CalibrationSample> measured() {
  std::vector<CalibrationSample> samples;
  const auto add = [&](const auto& table, Format b) {
    for (const testing::Measured& row : table) {
      const Format wide = b == Format::nvfp4 ? Format::fp16 : b;
      const DualGemmProblem problem{.m = row.m, .n = row.n, .k = row.k, .a = wide, .b = b, .out = wide};
      CalibrationSample sample{.what = row.strategy,
                               .work = testing::planned(problem, row.strategy, row.knobs).work,
                               .measured_us = row.burst_us};
      samples.push_back(sample);
      sample.measured_us = row.sustained_us;
      sample.clocks = Clocks::sustained;
      samples.push_back(sample);
    }
  };
  add(testing::nvfp4_weights, Format::nvfp4);
  add(testing::bf16_weights, Format::bf16);
  return samples;
}

// docs/planner.md tells these numbers.
TEST(Calibrate, TheDefaultsAreNearWhatTheyWereFittedTo) {
  const PredictionError error = prediction_error(measured(), device_spec("H200"), {});
  EXPECT_EQ(error.samples, 66U);
  EXPECT_LT(error.median, 0.043);
  EXPECT_LT(error.worst, 0.165);
}

TEST(Calibrate, AttentionIsFittedToo) {
  Calibration truth;
  truth.softmax_loss = 0.3;
  truth.attention_fill_us = 2;
  std::vector<CalibrationSample> samples;
  for (const std::int64_t length : {256, 1024, 4096, 8192}) {
    const AttentionProblem problem{.heads = 8, .kv_heads = 8, .queries = length, .keys = length, .head_dim = 128};
    samples.push_back(
        {.what = "attention", .work = {{strategies::attention::tiled_kernel(problem, {.pairs_tiles = true})}}});
    samples.back().measured_us = predicted_us(samples.back(), device_spec("H200"), truth);
  }
  const Calibration fitted = fit(samples, device_spec("H200"));
  EXPECT_NEAR(fitted.attention_fill_us, 2, 0.3);
  EXPECT_LT(prediction_error(samples, device_spec("H200"), fitted).worst, 0.03);
}

TEST(Calibrate, AFitPredictsRowsItHasNotSeen) {
  std::vector<CalibrationSample> seen, unseen;
  for (const CalibrationSample& sample : measured()) {
    (seen.size() <= unseen.size() ? seen : unseen).push_back(sample);
  }
  const DeviceSpec& h200 = device_spec("H200");
  const Calibration fitted = fit(seen, h200);
  EXPECT_LT(prediction_error(unseen, h200, fitted).median, 0.15);
}

TEST(Calibrate, FindsTheParametersThatMadeTheSamples) {
  const DeviceSpec& h200 = device_spec("H200");
  Calibration truth;
  truth.matrix_efficiency = 0.7;
  truth.fill_us = 2.5;
  truth.exact_instructions = 160;
  std::vector<CalibrationSample> samples = measured();
  for (CalibrationSample& sample : samples) {
    sample.measured_us = predicted_us(sample, h200, truth);
  }
  const PredictionError before = prediction_error(samples, h200, {});
  const PredictionError after = prediction_error(samples, h200, fit(samples, h200));
  EXPECT_GT(before.median, 0.15);
  EXPECT_LT(after.median, 0.03);
}

TEST(Calibrate, RefusesTooLittleOrImpossibleEvidence) {
  std::vector<CalibrationSample> samples = measured();
  EXPECT_THROW((void)fit(std::span(samples).first(3), device_spec("H200")), Error);
  samples[2].measured_us = 0;
  EXPECT_THROW((void)fit(samples, device_spec("H200")), Error);
}

TEST(Calibrate, WritesWhatItReads) {
  Calibration calibration;
  calibration.fill_us = 1.0 / 3;
  calibration.exact_instructions = 77;
  EXPECT_EQ(read_calibration(write_calibration(calibration, "H200")), calibration);
  EXPECT_EQ(read_calibration("# nothing changed\n\n"), Calibration{});
  EXPECT_THROW((void)read_calibration("fill_us = fast\n"), Error);
  EXPECT_THROW((void)read_calibration("fill_us = 900\n"), Error);
  EXPECT_THROW((void)read_calibration("warp_speed = 9\n"), Error);
}

}  // namespace
}  // namespace thresher::planner
