#include "arena/predictions/calibration_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "arena/expect_error.hpp"
#include "arena/predictions/calibration_samples.hpp"
#include "arena/predictions/predictions.hpp"
#include "arena/text_file.hpp"
#include "ops/forecast.hpp"
#include "planner/calibrate.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

class CalibrationFile : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("THRESHER_CALIBRATION", file_.c_str(), 1); }
  void TearDown() override {
    ::unsetenv("THRESHER_CALIBRATION");
    fs::remove(file_);
  }
  fs::path file_ = fs::path(::testing::TempDir()) / "thresher-calibration.toml";
};

TEST_F(CalibrationFile, IsReadWhereItIsAndElseTheBuiltInOneIs) {
  EXPECT_EQ(load_calibration("", "H200").source, "built in");
  planner::Calibration slow;
  slow.matrix_efficiency = 0.5;
  write_text(file_, planner::write_calibration(slow, "H200"), "the file");
  EXPECT_EQ(load_calibration("", "H200").calibration, slow);
  EXPECT_EQ(load_calibration("", "H200").source, file_.string());
  EXPECT_EQ(load_calibration(file_.string(), "H200").calibration, slow);
  Machine machine{"cuda:0", {}, GpuInfo{}};
  machine.gpu->name = "NVIDIA H200";
  const Forecaster forecaster = forecaster_for(machine);
  EXPECT_EQ(forecaster.calibration, slow);
  EXPECT_EQ(forecaster.calibration_source, file_.string());
}

TEST_F(CalibrationFile, ABadOneIsNamed) {
  write_text(file_, "speed = 3\n", "the file");
  EXPECT_EQ(error_of([] { (void)load_calibration("", "H200"); }),
            file_.string() + ": calibration parameter \"speed\" is not known: remove the line, or calibrate again");
  write_text(file_, planner::write_calibration({}, "B200"), "the file");
  EXPECT_EQ(error_of([] { (void)load_calibration("", "H200"); }),
            file_.string() + ": the calibration is of the device \"B200\", expected \"H200\": it holds for no other");
  EXPECT_EQ(load_calibration("", "B200").calibration, planner::Calibration{});
  EXPECT_EQ(error_of([] { (void)load_calibration("/none.toml", "H200"); }),
            "calibration /none.toml: the file cannot be read: No such file or directory");
}

TEST(Calibrate, NeedsAGpuAndSaysSo) {
  const auto nothing = [](const std::string&, std::size_t, std::size_t) {};
  EXPECT_EQ(error_of([&] { (void)measure_calibration(*cpu_rig(), 1, nothing); }),
            "calibrate needs a GPU, and there is none here: the planner predicts no contestants of a CPU");
}

// Samples made by the prediction itself with other parameters: what was not seen is predicted as well.
TEST(Calibrate, AFitToHalfPredictsTheOtherHalf) {
  planner::Calibration truth;
  truth.matrix_efficiency = 0.8;
  truth.fill_us = 2.5;
  const DeviceSpec& device = device_spec("H200");
  std::vector<planner::CalibrationSample> samples;
  const std::pair<const char*, const char*> contestants[]{
      {"two_pass", ""}, {"packed", "block_tokens=64 stages=3"}, {"packed", "block_tokens=128 stages=3"}};
  for (const auto& [strategy, knobs] : contestants) {
    for (const std::int64_t m : {64, 128, 256, 512, 1024}) {
      const DualGemmProblem problem{.m = m, .n = 4096, .k = 4096, .a = Format::fp16, .b = Format::nvfp4};
      const DualGemmOptions options{.strategy = strategy, .knobs = Knobs::parse(knobs)};
      planner::CalibrationSample sample{.what = strategy, .work = ops::planned_call(problem, options, device).work};
      sample.measured_us = planner::predicted_us(sample, device, truth);
      samples.push_back(sample);
    }
  }
  EXPECT_LT(unseen_error(samples, device).median, 0.03);
  EXPECT_GT(planner::prediction_error(samples, device, {}).median, 0.05);
}

}  // namespace
}  // namespace thresher::arena
