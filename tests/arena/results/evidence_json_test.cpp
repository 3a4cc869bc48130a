// The form that ledgers and reports keep evidence in: what was written once is read for ever.
#include "arena/results/evidence_json.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arena/expect_error.hpp"
#include "arena/results/gate.hpp"
#include "arena/results/mode_samples.hpp"

namespace thresher::arena {
namespace {

TEST(EvidenceJson, OfNoneIsAnEmptyObject) { EXPECT_EQ(to_json(Evidence{}), "{}"); }

TEST(EvidenceJson, OfFeasibleHasWholeBytesHoweverMany) {
  EXPECT_EQ(to_json(MemoryNeed{225.6, 21e12}), R"({"needed_bytes":226,"available_bytes":21000000000000})");
}

TEST(EvidenceJson, OfCompilesReplacesWhatIsNoUtf8) {
  EXPECT_EQ(to_json(CompilerLog{"a \"quoted\"\nline\xFF"}), "{\"log\":\"a \\\"quoted\\\"\\nline\xEF\xBF\xBD\"}");
}

TEST(EvidenceJson, OfAuditedLeavesOutWhatWasNotDisassembled) {
  AuditReport report;
  report.kernel = "staged";
  report.registers = 34;
  const std::string resources = R"("declared_shared_bytes":0,"disassembled":)";
  EXPECT_EQ(
      to_json(AuditedKernel{report}),
      R"({"arch":"",)" + resources +
          R"(false,"kernel":"staged","registers":34,"spill_load_bytes":0,"spill_store_bytes":0,"stack_bytes":0})");
  report.arch = "sm_90a";
  report.disassembled = true;
  report.matrix_instructions = {{"HGMMA.64x256x16", 2}};
  EXPECT_EQ(to_json(AuditedEvidence{{{report, "the kernel", "fine"}}}),
            R"({"kernels":[{"arch":"sm_90a","barriers":0,"branches":0,"code_bytes":0,)" + resources +
                R"(true,"global_accesses":0,"kernel":"staged","local_accesses":0,)"
                R"("matrix_instructions":{"HGMMA.64x256x16":2},"registers":34,"sentence":"fine","shared_accesses":0,)"
                R"("spill_load_bytes":0,"spill_store_bytes":0,"stack_bytes":0,"title":"the kernel","tma_loads":0,)"
                R"("tma_stores":0,"wide_global_accesses":0}]})");
}

TEST(EvidenceJson, OfRaceFreeTellsTheFindingOrWhyThereIsNone) {
  RaceFreeEvidence evidence{{0, 1}, {}};
  evidence.kernels.push_back({"packed", {"1x8x16"}});
  evidence.kernels.push_back({"pingpong", {"1x8x16"}, ScheduleFinding{"a race", 1, "thresher emulate"}});
  evidence.kernels.push_back({"foreign", {}, {}, "it is not ours"});
  EXPECT_EQ(to_json(evidence),
            R"({"kernels":[{"kernel":"packed","problems":["1x8x16"]},)"
            R"({"finding":"a race","kernel":"pingpong","problems":["1x8x16"],"replay":"thresher emulate","seed":1},)"
            R"({"kernel":"foreign","not_judged":"it is not ours"}],"seeds":[0,1]})");
}

TEST(EvidenceJson, OfCorrectHasWordsForNumbersThatJsonHasNot) {
  TrialResult right{"1x8x16", "contest", {}};
  right.finding.evidence = {"contest",
                            {{"judged", std::int64_t{3}}},
                            {{"worst_element", {{"reference", std::numeric_limits<double>::quiet_NaN()}}}}};
  TrialResult wrong{"1x8x16", "normal", {}};
  wrong.finding.correct = false;
  wrong.finding.fault = "wrong values";
  wrong.finding.sentence = "all of them";
  wrong.finding.error_against_exact = 0.5;
  EXPECT_EQ(to_json(CorrectEvidence{7, Numerics::fast, {right, wrong}}),
            R"({"seed":7,"numerics":"fast","trials":[)"
            R"({"correct":true,"distribution":"contest","judged":3,"problem":"1x8x16","rule":"contest",)"
            R"("worst_element":{"reference":"nan"}},)"
            R"({"correct":false,"distribution":"normal","error_against_exact_operands":0.5,"fault":"wrong values",)"
            R"("problem":"1x8x16","sentence":"all of them"}]})");
}

TEST(EvidenceJson, OfHonestTellsWhatEachExperimentSaid) {
  EXPECT_EQ(to_json(HonestEvidence{"1x8x16",
                                   5,
                                   {{"zeros", std::nullopt, ""},
                                    {"the clock", std::nullopt, "too short"},
                                    {"new data", Accusation{"a cache", "it kept them"}, ""}}}),
            R"({"probes":[{"outcome":"nothing found","probe":"zeros"},)"
            R"({"outcome":"not judged","probe":"the clock","why":"too short"},)"
            R"({"cheat":"a cache","outcome":"accused","probe":"new data","sentence":"it kept them"}],)"
            R"("problem":"1x8x16","secret_seed":5})");
}

TEST(EvidenceJson, OfTimedHasClockCeilingsAndWhatWasLookedAt) {
  EXPECT_EQ(
      to_json(TimedEvidence{"wall clock",
                            Distribution::contest,
                            6,
                            {1.5, 2.5, 3.5, "measured", 2},
                            {{"1x8x16", 5, 30, 60, 59, 4, 31, 1.5, 0.5, 3, Distribution::specials, 2}}}),
      R"({"budget_s":6.0,"ceilings":{"bytes_per_s":3.5,"fast_rate":2.0,"method":"measured",)"
      R"("peak_operations_per_s":1.5,"sustained_operations_per_s":2.5},"clock":"wall clock",)"
      R"("distribution":"contest","verification":[{"calls":60,"calls_looked_at":59,"inputs_compared":31,"other_data":"specials",)"
      R"("problem":"1x8x16","samples":30,"samples_that_do_not_count":3,"samples_that_waited":2,"seconds_of_samples":1.5,"seconds_of_verification":0.5,"secret_seed":5,)"
      R"("whole_outputs":4}]})");
}

TEST(EvidenceJson, OfCompilesKeepsWhatWasReadAndWhatHeldTheCompiler) {
  BuildEvidence build;
  build.compiler = "g++ 12";
  build.tools = {{"/usr/bin/g++", "ab", false}};
  build.options = {"-O3"};
  build.kernel = {"mine.cpp", "cd", "int x;"};
  build.files = {{"mine.hpp", "ef", "int y;"}};
  build.system_files = 3;
  build.system_files_sha256 = "01";
  build.confined = {{{"files", true, "reads its own"}}};
  EXPECT_EQ(to_json(Evidence{build}),
            R"({"compiler":"g++ 12","confined":[{"in_force":true,"sentence":"reads its own","what":"files"}],)"
            R"("files":[{"path":"mine.hpp","sha256":"ef","text":"int y;"}],)"
            R"("kernel":{"path":"mine.cpp","sha256":"cd"},"options":["-O3"],"system_files":{"count":3,"sha256":"01"},)"
            R"("tools":[{"is_script":false,"path":"/usr/bin/g++","sha256":"ab"}]})");
}

TEST(EvidenceJson, OfCorrectTellsWhatHeldTheProcessWhereThereWasOne) {
  CorrectEvidence correct{7, Numerics::exact, {}};
  correct.confined = {{{"files", false, "no Landlock"}}};
  EXPECT_EQ(to_json(correct), R"({"seed":7,"numerics":"exact","trials":[],"process_confined":)"
                              R"([{"in_force":false,"sentence":"no Landlock","what":"files"}]})");
}

TEST(ModeSamples, HoldTimesTelemetryAndRotation) {
  Telemetry hot;
  hot.clock_mhz = 1500;
  hot.throttle_reasons = {"heat"};
  ModeSamples samples{4, {2.5}, {3.5}, {1.5}, {}, {hot, {}}, {3, 100, 10, 1000}};
  EXPECT_EQ(to_json(samples),
            R"({"baseline_again_us":[3.5],"baseline_us":[2.5],"calls_per_sample":4,"contestant_us":[1.5],)"
            R"("rotation":{"bytes":300,"cold":true,"last_level_cache_bytes":10,"sets":3,"why_not_cold":""},)"
            R"("telemetry":[{"mhz":1500.0,"throttled":["heat"]},{}]})");
  samples.seen_us = {0.5};
  EXPECT_NE(to_json(samples).find(R"("seen_us":[0.5])"), std::string::npos);
}

TEST(EvidenceJson, OfVerdictIsReadAgainWhereItWasRecorded) {
  const VerdictEvidence verdict{{{TimingMode::cold_burst, {1.5, 1.25, 1.75}, {1, 1, 1.125}, 12, {1.5}}}};
  const std::string json = to_json(verdict);
  EXPECT_EQ(json,
            R"({"cold burst":{"each":[1.5],"geomean_speedup":1.5,"high":1.75,"low":1.25,"noise":1.125,"rounds":12}})");
  const Evidence recorded = RecordedEvidence{json};
  EXPECT_EQ(to_json(recorded), json);
  for (const Evidence& evidence : {Evidence{verdict}, recorded}) {
    const std::vector<ModeSpeedup> speedups = speedups_of(evidence);
    ASSERT_EQ(speedups.size(), 1U);
    EXPECT_EQ(speedups[0].mode, TimingMode::cold_burst);
    EXPECT_EQ(speedups[0].geomean.low, 1.25);
    EXPECT_EQ(speedups[0].rounds, 12);
    EXPECT_EQ(speedups[0].each, std::vector{1.5});
  }
  EXPECT_TRUE(speedups_of(MemoryNeed{}).empty());
  EXPECT_TRUE(speedups_of(RecordedEvidence{"{}"}).empty());
}

TEST(Gates, AreKnownByTheNamesThatLedgersKeep) {
  for (const GateTraits& gate : all_gates) {
    EXPECT_EQ(gate_from_name(name(gate.kind)), gate.kind);
  }
  EXPECT_EQ(error_of([] { (void)gate_from_name("race_free"); }),
            "there is no gate \"race_free\", only feasible, compiles, audited, race-free, correct, honest, timed, "
            "verdict");
}

}  // namespace
}  // namespace thresher::arena
