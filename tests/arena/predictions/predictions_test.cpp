#include "arena/predictions/predictions.hpp"
#include "arena/gemm/task.hpp"
#include "arena/report/run_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "arena/predictions/calibration_samples.hpp"
#include "arena/sample_run.hpp"

namespace thresher::arena {
namespace {

Forecaster h200() { return {.device = &device_spec("H200")}; }

Pitch stages_pitch() { return load_pitch(std::string(THRESHER_SOURCE_DIR) + "/pitches/origin/pipeline_stages.toml"); }

TEST(Predictions, EveryProblemOfTheOriginHasATimeForWhatRunsThere) {
  const Suite suite = load_suite("origin");
  for (const char* strategy : {"two_pass", "packed"}) {
    const auto records = predict_times(h200(), suite, {"dual_gemm", strategy}, nullptr, 3);
    ASSERT_EQ(records.size(), suite.problems.size());
    for (const PredictionRecord& record : records) {
      ASSERT_TRUE(record.predicted_us) << record.why;
      EXPECT_GT(*record.predicted_us, 10);
      EXPECT_LT(*record.predicted_us, 1000);
      EXPECT_EQ(record.ordinal, 3);
      EXPECT_NE(record.why.find("bound by"), std::string::npos) << record.why;
      EXPECT_EQ(record.panel, "");
      EXPECT_EQ(nlohmann::json::parse(record.planner)["device"], "H200");
    }
  }
}

TEST(Predictions, APitchCarriesThePanelsOpinion) {
  const Pitch pitch = stages_pitch();
  const auto records = predict_times(h200(), load_suite("origin"), pitch.contestant, &pitch, 0);
  const auto opinion = nlohmann::json::parse(records.front().panel);
  EXPECT_EQ(opinion["claimed"][0], 1.5);
  EXPECT_LT(opinion["predicted"], 1.05);
  EXPECT_GT(opinion["score"], 0);
}

// The times of the published tournament on an H200; a prediction without them in view would be worth nothing.
TEST(Predictions, IsNearWhatAnH200Measured) {
  struct Measured {
    const char* strategy;
    DualGemmProblem problem;
    double us;
  };
  const auto with = [](std::int64_t m, std::int64_t n, std::int64_t k, Format a) {
    return DualGemmProblem{.m = m, .n = n, .k = k, .a = a, .b = Format::nvfp4, .out = Format::fp16};
  };
  std::vector<double> errors;
  for (const Measured& one : {Measured{"two_pass", with(256, 4096, 7168, Format::nvfp4), 108.4},
                              Measured{"packed", with(256, 4096, 7168, Format::nvfp4), 43.2},
                              Measured{"two_pass", with(512, 3072, 7168, Format::nvfp4), 105.2},
                              Measured{"packed", with(512, 3072, 7168, Format::nvfp4), 58.5},
                              Measured{"two_pass", with(16, 14336, 4096, Format::fp16), 152.0},
                              Measured{"packed", with(16, 14336, 4096, Format::fp16), 20.5},
                              Measured{"two_pass", with(4096, 4096, 7168, Format::fp16), 654.3},
                              Measured{"packed", with(4096, 4096, 7168, Format::fp16), 553.3}}) {
    Suite suite;
    suite.problems = {problem_of(one.problem)};
    const auto records = predict_times(h200(), suite, {"dual_gemm", one.strategy}, nullptr, 0);
    ASSERT_TRUE(records.front().predicted_us) << records.front().why;
    errors.push_back(std::abs(*records.front().predicted_us / one.us - 1));
    EXPECT_LT(errors.back(), 0.25) << one.strategy << " on " << records.front().problem;
  }
  EXPECT_LT(median(errors), 0.15);
}

TEST(Predictions, AttentionOnTheMatrixUnitHasATimeToo) {
  const Suite suite = load_suite("attention_origin");
  // What an H200 took, in microseconds (measurements/attention_h200_2026-11-21.json).
  for (const auto& [strategy, us] : {std::pair{"split", 4.1}, {"planned", 4.1}, {"pipelined", 10.4}}) {
    const auto records = predict_times(h200(), suite, {"attention", strategy}, nullptr, 0);
    ASSERT_EQ(records.size(), suite.problems.size());
    ASSERT_TRUE(records.front().predicted_us) << records.front().why;
    EXPECT_NEAR(*records.front().predicted_us / us, 1, 0.15) << strategy;
  }
  const auto simple = predict_times(h200(), suite, {"attention", "simple"}, nullptr, 0);
  EXPECT_FALSE(simple.front().predicted_us);
  EXPECT_NE(simple.front().why.find("no words for the work of the strategy simple"), std::string::npos)
      << simple.front().why;
}

TEST(Predictions, ThePanelKnowsPitchesOfAttentionAndOfFastNumerics) {
  const auto opinion = [](const char* file, const char* suite) {
    const Pitch pitch = load_pitch(std::string(THRESHER_SOURCE_DIR) + "/pitches/" + file);
    return nlohmann::json::parse(predict_times(h200(), load_suite(suite), pitch.contestant, &pitch, 0).front().panel);
  };
  EXPECT_GT(opinion("attention/split.toml", "attention_origin")["predicted"], 1.5);
  EXPECT_GT(opinion("nvfp4/fast.toml", "origin")["predicted"], 1.0);
  const auto unknown = opinion("attention/planned.toml", "attention_origin");
  EXPECT_TRUE(unknown["predicted"].is_null());
  EXPECT_EQ(unknown["withdrawn"], false);
}

TEST(Predictions, NothingIsPredictedOfASuiteThatIsNotTimed) {
  EXPECT_TRUE(predict_times(h200(), load_suite("edges"), {"dual_gemm", "two_pass"}, nullptr, 0).empty());
}

TEST(Predictions, WhoCannotSaySaysSo) {
  const Suite suite = load_suite("origin");
  const auto nobody = predict_times({}, suite, {"dual_gemm", "two_pass"}, nullptr, 0);
  EXPECT_FALSE(nobody.front().predicted_us);
  EXPECT_EQ(nobody.front().why, "the planner has no table for this machine");
  const auto foreign = predict_times(h200(), suite, {"dual_gemm", "mine"}, nullptr, 0);
  EXPECT_FALSE(foreign.front().predicted_us);
  EXPECT_NE(foreign.front().why.find("mine"), std::string::npos) << foreign.front().why;  // in words of who looked
}

TEST(Forecaster, FindsTheTableOfTheMachine) {
  Machine machine{"cuda:0", {}, GpuInfo{}};
  machine.gpu->name = "NVIDIA H200";
  EXPECT_EQ(forecaster_for(machine).device, &device_spec("H200"));
  machine.gpu->name = "another";
  EXPECT_EQ(forecaster_for(machine).device, nullptr);
  machine.gpu.reset();
  EXPECT_EQ(forecaster_for(machine).device, nullptr);
}

PredictionRecord prediction(std::int64_t ordinal, const std::string& problem, double us) {
  PredictionRecord record;
  record.ordinal = ordinal;
  record.problem = problem;
  record.predicted_us = us;
  return record;
}

/// sample_run: 41 300 us for the baseline, 25 812.5 and 51 625 for the others, on two problems.
RunRecord predicted_run() {
  RunRecord run = sample_run();
  const std::string first = run.entries[0].measurements[0].problem;
  const std::string second = run.entries[0].measurements[3].problem;
  run.predictions = {prediction(0, first, 41'300), prediction(1, first, 25'812.5 * 1.1), prediction(2, first, 51'625),
                     prediction(0, second, 41'300 * 0.5), prediction(1, second, 25'812.5)};
  run.predictions[1].panel = R"({"predicted":1.5,"predicted_interval":[1.4,1.7],"claimed":[1.5,1.8]})";
  run.predictions[2].panel = R"({"predicted":1.2,"predicted_interval":[1.1,1.3],"claimed":[1.3,1.3]})";
  for (PredictionRecord& record : run.predictions) {
    record.opinion = panel_from_json(record.panel);
  }
  return run;
}

TEST(PredictionQuality, IsOfTheTimesThatWerePredictedAndMeasured) {
  const RunRecord run = predicted_run();
  const PredictionQuality quality = prediction_quality({&run, 1});
  ASSERT_EQ(quality.times.size(), 5U);
  EXPECT_NEAR(quality.all.median_error, 0, 1e-9);
  EXPECT_EQ(quality.all.shapes, 2U);
  EXPECT_EQ(quality.all.best_within, 1U) << "on the second problem the baseline was predicted to be the best";
  EXPECT_EQ(quality.panel.count, 2U);
  EXPECT_NEAR(quality.panel.sign_right, 0.5, 1e-9);
  EXPECT_NEAR(quality.panel.covered, 0.5, 1e-9);
  EXPECT_NEAR(quality.claims.covered, 0.5, 1e-9);
  const std::string text = prediction_quality_text(quality);
  EXPECT_NE(text.find("median error 0.0 % over 5 times"), std::string::npos) << text;
  EXPECT_NE(text.find("on 1 of 2 shapes"), std::string::npos) << text;
  EXPECT_NE(text.find("  origin: median error"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(to_json(run))["prediction_quality"]["best_within_10_percent"], 1);
}

TEST(PredictionQuality, ProblemsThatTheCalibrationNeverSawHaveALineOfTheirOwn) {
  RunRecord run = predicted_run();
  const std::string first = run.entries[0].measurements[0].problem;
  const std::string seen = "320x6144x4096 bf16*bf16->bf16";
  for (Entry& entry : run.entries) {
    for (Measurement& measurement : entry.measurements) {
      measurement.problem = measurement.problem == first ? seen : measurement.problem;
    }
  }
  for (PredictionRecord& record : run.predictions) {
    record.problem = record.problem == first ? seen : record.problem;
  }
  const PredictionQuality quality = prediction_quality({&run, 1});
  EXPECT_EQ(quality.all.times, 5U);
  EXPECT_EQ(quality.unseen.times, 2U);
  EXPECT_EQ(quality.unseen.shapes, 1U);
  EXPECT_NE(prediction_quality_text(quality).find("does not time: median error"), std::string::npos)
      << prediction_quality_text(quality);
}

TEST(PredictionQuality, TheCalibrationTimesNothingThatASuiteHolds) {
  for (const char* name : {"origin", "origin_bf16", "decode", "prefill", "attention", "attention_origin"}) {
    for (const Problem& problem : load_suite(name).problems) {
      EXPECT_FALSE(is_calibrated_on(label(problem))) << label(problem);
    }
  }
  EXPECT_TRUE(is_calibrated_on("320x6144x4096 bf16*bf16->bf16"));
}

TEST(Claims, StandBesidePredictionAndMeasurement) {
  RunRecord run = predicted_run();
  run.predictions.erase(run.predictions.begin() + 2);
  const std::string text = claims_text(run);
  EXPECT_NE(text.find("      claimed              predicted               measured  pitch\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1.5-1.8x        1.5x [1.4, 1.7]      1.6x [1.57, 1.63]  Blocks stay in cache\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1.3-1.3x                      -    0.8x [0.784, 0.816]  Stages\n"), std::string::npos) << text;
  run.entries.resize(1);
  EXPECT_EQ(claims_text(run), "");
}

TEST(PredictionQuality, NothingPredictedIsNothing) {
  RunRecord run = sample_run();
  run.predictions.clear();
  EXPECT_EQ(prediction_quality_text(prediction_quality({&run, 1})), "");
}

}  // namespace
}  // namespace thresher::arena
