#include "arena/gates/verdict.hpp"

#include <gtest/gtest.h>

namespace thresher::arena {
namespace {

ModeSpeedup speedup(double value, TimingMode mode = TimingMode::cold_burst, double half_width = 0.01) {
  return {mode, {value, value - half_width, value + half_width}, {1, 0.995, 1.005}, 20, {value, value}};
}

const std::vector<GateResult> gates{{GateKind::feasible, Outcome::passed, ""},
                                    {GateKind::audited, Outcome::not_judged, "no disassembler"},
                                    {GateKind::correct, Outcome::passed, ""},
                                    {GateKind::timed, Outcome::passed, ""}};

Pitch pitch_with(const Acceptance& accept) {
  Pitch pitch;
  pitch.accept = accept;
  return pitch;
}

std::string word(const std::vector<ModeSpeedup>& modes, const Acceptance& accept = {}) {
  const Pitch pitch = pitch_with(accept);
  return std::string(name(reach_verdict(modes, gates, &pitch, "base").verdict));
}

TEST(Verdict, WithoutTermsASpeedUpBeyondTheNoiseIsAccepted) {
  const Decision verdict = reach_verdict({speedup(1.2)}, gates, nullptr, "base");
  EXPECT_EQ(verdict.verdict, Verdict::accepted);
  EXPECT_EQ(
      verdict.sentence,
      "4 of 5 gates judged; over base: cold burst: 1.200x [1.190, 1.210], faster (noise 1.005x); not judged here: "
      "audited");
}

TEST(Verdict, SaysOfWhomItAcceptsThatItRefusesOtherShapes) {
  std::vector<GateResult> with_honest = gates;
  HonestEvidence evidence{
      "7x72x64", 1, {{"a shape nobody listed", std::nullopt, "the neighbouring shape is not feasible"}}};
  with_honest.push_back({GateKind::honest, Outcome::passed, "", evidence});
  EXPECT_EQ(reach_verdict({speedup(1.2)}, with_honest, nullptr, "base").sentence.find("refuses"), std::string::npos);
  evidence.probes.front().not_judged = std::string(refuses_another_shape) + "not mine";
  with_honest.back().evidence = evidence;
  EXPECT_NE(reach_verdict({speedup(1.2)}, with_honest, nullptr, "base")
                .sentence.find("; it refuses 1 of 1 shapes that the suite does not list"),
            std::string::npos);
}

TEST(Verdict, EveryDecidingModeMustAgree) {
  EXPECT_EQ(word({speedup(1.2), speedup(1.0, TimingMode::cold_sustained)}), "within noise");
  EXPECT_EQ(word({speedup(1.2), speedup(0.9, TimingMode::cold_sustained)}), "rejected");
  EXPECT_EQ(word({speedup(1.2), speedup(1.1, TimingMode::cold_sustained)}), "accepted");
}

TEST(Verdict, InsideTheNoiseNothingIsAcceptedOrRejected) {
  EXPECT_EQ(word({speedup(1.001)}), "within noise");
  EXPECT_EQ(word({speedup(1.2, TimingMode::cold_burst, 0.5)}), "within noise");
}

TEST(Verdict, TooFewRoundsSayNothingAndAreCounted) {
  ModeSpeedup mode = speedup(2);
  mode.rounds = 3;
  const Decision verdict = reach_verdict({mode}, gates, nullptr, "base");
  EXPECT_EQ(verdict.verdict, Verdict::within_noise);
  EXPECT_NE(verdict.sentence.find("too few rounds to say (3, 6 are needed)"), std::string::npos) << verdict.sentence;
}

TEST(Verdict, SlowerBeyondDoubtIsRejectedInTwoRoundsAndNotInOne) {
  ModeSpeedup mode = speedup(0.001, TimingMode::cold_burst, 0);
  mode.rounds = 1;
  EXPECT_EQ(reach_verdict({mode}, gates, nullptr, "base").verdict, Verdict::within_noise);
  mode.rounds = 2;
  const Decision verdict = reach_verdict({mode}, gates, nullptr, "base");
  EXPECT_EQ(verdict.verdict, Verdict::rejected);
  EXPECT_TRUE(verdict.sentence.starts_with("slower in cold burst; over base")) << verdict.sentence;
  EXPECT_EQ(verdict.sentence.find("too few"), std::string::npos) << verdict.sentence;
  mode.geomean = {0.7, 0.7, 0.7};
  EXPECT_EQ(reach_verdict({mode}, gates, nullptr, "base").verdict, Verdict::within_noise);
}

TEST(Verdict, TheOriginsTerms) {
  Acceptance accept;
  accept.geomean_speedup = 1.4;
  accept.fall_back_below = 1.3;
  EXPECT_EQ(word({speedup(1.5)}, accept), "accepted");
  const Pitch pitch = pitch_with(accept);
  const Decision between = reach_verdict({speedup(1.35)}, gates, &pitch, "base");
  EXPECT_EQ(between.verdict, Verdict::rejected);
  EXPECT_EQ(between.sentence.find("fall back"), std::string::npos) << between.sentence;
  const Decision under = reach_verdict({speedup(1.2)}, gates, &pitch, "base");
  EXPECT_EQ(under.verdict, Verdict::rejected);
  EXPECT_NE(under.sentence.find("under 1.3x: fall back to base"), std::string::npos) << under.sentence;
  EXPECT_EQ(word({speedup(1.0)}, accept), "rejected");  // its interval ends far below what it must reach
}

TEST(Verdict, OneProblemCanRejectAPitch) {
  Acceptance accept;
  accept.each_speedup = 1.0;
  ModeSpeedup mode = speedup(1.2);
  mode.each = {1.6, 0.9};
  EXPECT_EQ(word({mode}, accept), "rejected");
}

TEST(Verdict, WhatCannotBeJudgedDoesNotCountAsPassed) {
  Acceptance accept;
  accept.gates = {GateKind::correct, GateKind::audited};
  EXPECT_EQ(word({speedup(1.2)}, accept), "not judged");
  EXPECT_EQ(word({speedup(0.8)}, accept), "rejected");
  accept.gates = {GateKind::correct};
  EXPECT_EQ(word({speedup(1.2)}, accept), "accepted");
  accept.occupancy_not_worse = true;
  EXPECT_EQ(word({speedup(1.2)}, accept), "not judged");
}

}  // namespace
}  // namespace thresher::arena
