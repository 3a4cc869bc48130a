#include "arena/panel/panel.hpp"
#include "arena/gemm/options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "arena/expect_error.hpp"
#include "arena/gemm/task.hpp"
#include "arena/suites/suite.hpp"
#include "ops/forecast.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(THRESHER_SOURCE_DIR) / "pitches/origin";

std::map<std::string, PitchScore> origins() {
  std::map<std::string, PitchScore> opinions;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    const Pitch pitch = load_pitch(file.path().string());
    const bool is_16_bit = pitch.baseline.knobs.contains("block_outputs");
    opinions[file.path().stem().string()] =
        consider(pitch, load_suite(is_16_bit ? "origin_bf16" : "origin").problems, device_spec("H200"));
  }
  return opinions;
}

Pitch pitch_of(const std::string& contestant_knobs, const std::string& more = "") {
  return parse_pitch("title = \"p\"\n[contestant]\noperation = \"dual_gemm\"\nstrategy = \"packed\"\nknobs = { " +
                         contestant_knobs +
                         " }\n[baseline]\nstrategy = \"packed\"\nknobs = { block_tokens = 128, stages = 3 }\n"
                         "[claim]\nspeedup = [1.5, 1.8]\nconfidence = 0.5\nreason = \"r\"\ntouches = \"epilogue\"\n" +
                         more,
                     "p.toml");
}

PitchScore asked(const Pitch& pitch, std::string_view device = "H200") {
  return consider(pitch, load_suite("origin").problems, device_spec(device));
}

TEST(PitchRanking, EveryPitchOfTheOriginIsFeasibleAndPredicted) {
  const auto opinions = origins();
  EXPECT_EQ(opinions.size(), 8U);
  for (const auto& [name, opinion] : opinions) {
    EXPECT_EQ(opinion.feasible_problems, opinion.problems) << name << ": " << opinion.reason;
    EXPECT_TRUE(opinion.predicted_speedup) << name;
    EXPECT_GE(opinion.score, 0) << name;
    EXPECT_LE(opinion.score, 1) << name;
  }
}

TEST(PitchRanking, AStrategyForOtherFormatsIsNotCalledInfeasible) {
  const Pitch pitch = load_pitch((folder / "tile_tuning.toml").string());
  const auto opinion_on = [&](const char* suite) {
    return consider(pitch, load_suite(suite).problems, device_spec("H200"));
  };
  const PitchScore elsewhere = opinion_on(pitch.contestant.strategy == "packed" ? "origin_bf16" : "origin");
  EXPECT_TRUE(elsewhere.reason.starts_with("not for these formats: strategy " + pitch.contestant.strategy))
      << elsewhere.reason;
  EXPECT_FALSE(elsewhere.predicted_speedup);
}

// What the origin found out by building it.
TEST(PitchRanking, TheOriginsClaimsAreNotBelieved) {
  auto opinions = origins();
  EXPECT_LT(*opinions["pipeline_stages"].predicted_speedup, 1.05);
  EXPECT_LT(opinions["pipeline_stages"].predicted_high, opinions["pipeline_stages"].claimed_low);
  // The epilogue's whole share is under what was claimed for storing it in another way.
  EXPECT_LT(*opinions["tma_store_epilogue"].max_possible, 1.12);
  EXPECT_LT(*opinions["tma_store_epilogue"].predicted_speedup, 1.05);
  EXPECT_GE(opinions["tma_store_epilogue_revised"].predicted_high, opinions["tma_store_epilogue_revised"].claimed_low);
  EXPECT_GT(opinions["tma_store_epilogue_revised"].evidence_score, opinions["tma_store_epilogue"].evidence_score);
  EXPECT_LT(*opinions["tile_tuning"].predicted_speedup, 1.8);
  EXPECT_LT(*opinions["warp_specialisation"].predicted_speedup, 1.25);
  // A clear loss (0.6 to 0.7 was measured for BF16 on an H200), and nowhere near the 42 times that were claimed.
  EXPECT_LT(*opinions["two_pass"].predicted_speedup, 0.75);
  EXPECT_GT(*opinions["two_pass"].predicted_speedup, 1.0 / 42);
}

// Tiles that fit are predicted to be much faster than tiles of 8 tokens; a pitch that says it touches the launch alone
// can give back no more.
TEST(PitchRanking, TheIntervalHoldsItsOwnMiddle) {
  Pitch pitch = pitch_of("block_tokens = 128, stages = 4");
  pitch.baseline.knobs = {{"block_tokens", "8"}, {"stages", "3"}};
  pitch.claim.touches = "launch";
  const PitchScore opinion = asked(pitch);
  ASSERT_TRUE(opinion.predicted_speedup) << opinion.reason;
  EXPECT_EQ(opinion.predicted_speedup, opinion.max_possible);
  EXPECT_LE(opinion.predicted_low, *opinion.predicted_speedup);
  EXPECT_GE(opinion.predicted_high, *opinion.predicted_speedup);
}

// With knobs and without them, the tokens' preparation included: what the ledger freezes is ops::forecast.
TEST(PitchRanking, PredictsWhatTheLedgerKeeps) {
  Pitch pitch = pitch_of("block_tokens = 256");
  pitch.baseline.knobs = {};
  const std::vector<Problem> problems{load_suite("origin").problems.front()};
  const DualGemmProblem problem = dual_gemm(problems.front());
  const DeviceSpec& device = device_spec("H200");
  const double before = ops::forecast(problem, DualGemmOptions{.strategy = "packed"}, device).us();
  const planner::Prediction after =
      ops::forecast(problem, DualGemmOptions{.strategy = "packed", .knobs = {{"block_tokens", "256"}}}, device);
  EXPECT_GT(after.parts.passes_us, 0);
  EXPECT_DOUBLE_EQ(*consider(pitch, problems, device).predicted_speedup, before / after.us());
}

TEST(PitchRanking, RanksByScoreWithTheWithdrawnLast) {
  std::vector<PitchScore> opinions(3);
  opinions[0].pitch = "withdrawn";
  opinions[0].score = 0.9;
  opinions[0].withdrawn = true;
  opinions[1].pitch = "weak";
  opinions[1].score = 0.2;
  opinions[2].pitch = "strong";
  opinions[2].score = 0.5;
  opinions = rank_pitches(std::move(opinions));
  EXPECT_EQ(opinions[0].pitch, "strong");
  EXPECT_EQ(opinions[1].pitch, "weak");
  EXPECT_EQ(opinions[2].pitch, "withdrawn");
}

TEST(PitchRanking, APitchUnderItsOwnThresholdIsWithdrawn) {
  const std::string abort = "[abort]\nshare_of_time_below = ";
  const PitchScore kept = asked(pitch_of("block_tokens = 128, stages = 4", abort + "0.001\n"));
  EXPECT_FALSE(kept.withdrawn) << kept.reason;
  const PitchScore gone = asked(pitch_of("block_tokens = 128, stages = 4", abort + "0.5\n"));
  EXPECT_TRUE(gone.withdrawn);
  EXPECT_NE(gone.reason.find("under its own abort threshold of 50.0 %: withdrawn"), std::string::npos) << gone.reason;
  EXPECT_LE(*gone.predicted_speedup, *gone.max_possible);
}

TEST(PitchRanking, WhatCannotExistIsWithdrawnWithTheNumber) {
  const PitchScore opinion = asked(pitch_of("block_tokens = 256, blocks_per_slot = 2, stages = 9"));
  EXPECT_TRUE(opinion.withdrawn);
  EXPECT_EQ(opinion.feasible_problems, 0U);
  EXPECT_EQ(opinion.feasibility_score, 0);
  EXPECT_NE(opinion.reason.find("over the limit of 232448"), std::string::npos) << opinion.reason;
}

TEST(PitchRanking, EvidenceCountsForLessOnACardThatWasNeverMeasured) {
  const Pitch pitch = pitch_of("block_tokens = 128, stages = 4");
  EXPECT_GT(asked(pitch, "H200").evidence_score, asked(pitch, "H100").evidence_score);
}

TEST(PitchRanking, RiskAndDaysAreCosts) {
  const std::string knobs = "block_tokens = 128, stages = 4";
  const double low = asked(pitch_of(knobs, "[cost]\nrisk = \"low\"\n")).score;
  const double medium = asked(pitch_of(knobs)).score;
  const double high = asked(pitch_of(knobs, "[cost]\nrisk = \"High: everything changes\"\n")).score;
  const double days = asked(pitch_of(knobs, "[cost]\nrisk = \"low\"\ndays = 30\n")).score;
  EXPECT_GT(low, medium);
  EXPECT_GT(medium, high);
  EXPECT_LT(days, low);
}

TEST(PitchRanking, KnobsAreWhatPlanIsAskedFor) {
  const DualGemmOptions fast = plan_options({"dual_gemm", "packed", {{"numerics", "fast"}, {"stages", "5"}}});
  EXPECT_EQ(fast.strategy, "packed");
  EXPECT_EQ(fast.knobs, (Knobs{{"numerics", "fast"}, {"stages", "5"}}));
}

TEST(PitchRanking, SharesAreOfThePartsThatArePitched) {
  planner::TimeParts parts;
  parts.main_us = 8;
  parts.epilogue_us = 1;
  parts.launch_us = 1;
  EXPECT_DOUBLE_EQ(*touched_share("the Epilogue", parts), 0.1);
  EXPECT_DOUBLE_EQ(*touched_share("epilogue and launch", parts), 0.2);
  EXPECT_DOUBLE_EQ(*touched_share("everything", parts), 1.0);
  EXPECT_FALSE(touched_share("the mood", parts));
}

TEST(PitchRanking, ItsOwnForecastsAreJudged) {
  const std::vector<Forecast> forecasts{{1.5, 1.8, 0.77}, {1.0, 1.05, 1.03}, {0.9, 1.1, 1.0}, {1.2, 1.2, 1.2}};
  const ForecastQuality quality = quality_of(forecasts);
  EXPECT_EQ(quality.count, 4U);
  EXPECT_DOUBLE_EQ(quality.sign_right, 0.75);
  EXPECT_DOUBLE_EQ(quality.covered, 0.75);
  EXPECT_NEAR(quality.mean_log_error,
              (std::abs(std::log(std::sqrt(2.7) / 0.77)) + std::abs(std::log(std::sqrt(1.05) / 1.03)) +
               std::abs(std::log(std::sqrt(0.99)))) /
                  4,
              1e-12);
  EXPECT_EQ(quality_of({}).count, 0U);
}

}  // namespace
}  // namespace thresher::arena
