// The form that ledgers and reports keep evidence in: what was written once is read for ever.
#include "arena/results/evidence_json.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "arena/expect_error.hpp"
#include "arena/results/gate.hpp"

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
  EXPECT_EQ(to_json(TimedEvidence{"wall clock",
                                  Distribution::contest,
                                  6,
                                  {1.5, 2.5, 3.5, "measured", 2},
                                  {{"1x8x16", 5, 30, 60, 4, 31, 1.5, 0.5}}}),
            R"({"budget_s":6.0,"ceilings":{"bytes_per_s":3.5,"fast_rate":2.0,"method":"measured",)"
            R"("peak_operations_per_s":1.5,"sustained_operations_per_s":2.5},"clock":"wall clock",)"
            R"("distribution":"contest","verification":[{"calls":60,"inputs_compared":31,"problem":"1x8x16",)"
            R"("samples":30,"seconds_of_samples":1.5,"seconds_of_verification":0.5,"secret_seed":5,)"
            R"("whole_outputs":4}]})");
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
