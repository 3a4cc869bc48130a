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

// docs/design/planner.md tells these numbers.
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
  EXPECT_EQ(read_calibration(write_calibration(calibration, "H200"), "H200"), calibration);
  EXPECT_EQ(read_calibration("# measured at night\n\n" + write_calibration({}, "H200") + "# the end", "H200"),
            Calibration{});
}

std::string refusal(const std::string& text) {
  try {
    (void)read_calibration(text, "H200");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Calibrate, RefusesParametersThatAreNone) {
  for (const std::string value : {"nan", "-nan", "nan(1)", "NaN", "inf", "-inf", "-1", "fast", "900", ""}) {
    EXPECT_EQ(refusal("fill_us = " + value + "\n"),
              "calibration parameter fill_us is \"" + value + "\": use a number from 0.2 to 4");
  }
  EXPECT_EQ(refusal("warp_speed = 9\n"),
            "calibration parameter \"warp_speed\" is not known: remove the line, or calibrate again");
}

TEST(Calibrate, RefusesTheFileOfAnotherDevice) {
  EXPECT_EQ(refusal(write_calibration({}, "B200")),
            "the calibration is of the device \"B200\", expected \"H200\": it holds for no other");
  EXPECT_EQ(refusal("device = H200\n"),
            "the calibration is of the device H200, expected \"H200\": it holds for no other");
  EXPECT_EQ(refusal("device\n"), "the calibration is of the device \"\", expected \"H200\": it holds for no other");
}

TEST(Calibrate, RefusesAFileThatIsNotComplete) {
  const std::string whole = write_calibration({}, "H200");
  const std::string no_device = "the calibration does not say device: the file is not complete, calibrate again";
  EXPECT_EQ(refusal(""), no_device);
  EXPECT_EQ(refusal("# nothing changed\n\n"), no_device);
  EXPECT_EQ(refusal(whole.substr(whole.find('\n') + 1)), no_device);
  EXPECT_EQ(refusal(whole.substr(0, whole.find("softmax_loss"))),
            "the calibration does not say softmax_loss: the file is not complete, calibrate again");
  EXPECT_EQ(refusal(whole.substr(0, whole.size() - 1)),
            "the last line of the calibration has no end: the file is cut off, calibrate again");
}

TEST(Calibrate, RefusesWhatIsGivenTwice) {
  const std::string whole = write_calibration({}, "H200");
  EXPECT_EQ(refusal(whole + "fill_us = 1.72\n"), "calibration parameter fill_us is given twice");
  EXPECT_EQ(refusal(whole + "device = \"H200\"\n"), "calibration parameter device is given twice");
}

}  // namespace
}  // namespace thresher::planner
