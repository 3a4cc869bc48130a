#include "arena/predictions/tuning_winners.hpp"

#include <gtest/gtest.h>

#include "arena/expect_error.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/contestant_spec.hpp"
#include "arena/sample_run.hpp"

namespace thresher::arena {
namespace {

const DeviceSpec& h200_spec() { return device_spec("H200"); }

/// One problem with NVFP4 weights, whose default is `packed` without knobs.
class TuningWinners : public ::testing::Test {
 protected:
  TuningWinners() {
    suite_.name = "origin";
    suite_.problems = {problem_of(DualGemmProblem{.m = 256, .n = 4096, .k = 7168, .b = Format::nvfp4})};
  }

  void time(const std::string& contestant, double us, double spread = 0.005) {
    Entry& entry = run_.entries.emplace_back();
    entry.suite = suite_.name;
    entry.contestant = contestant;
    entry.gates = {{GateKind::correct, Outcome::passed, ""}, {GateKind::verdict, Outcome::failed, "rejected"}};
    Measurement measurement = sample_measurement(label(suite_.problems[0]), TimingMode::cold_burst, us, us);
    measurement.contestant_us = {us, us * (1 - spread), us * (1 + spread)};
    entry.measurements = {measurement};
  }

  std::vector<std::string> enter() { return enter_winners(run_, {&suite_, 1}, "a GPU", h200_spec(), tuning_); }
  const ops::TunedChoice* found() const { return tuning_.find("a GPU", dual_gemm(suite_.problems[0])); }

  Suite suite_;
  RunRecord run_;
  ops::Tuning tuning_;
};

TEST_F(TuningWinners, WhatBeatsTheDefaultIsRecorded) {
  time("dual_gemm/packed", 44);
  time("dual_gemm/two_pass", 110);
  time("dual_gemm/packed[block_tokens=128,blocks_per_slot=2,math_warpgroups=2,split_k=1,stages=3]", 40);
  EXPECT_EQ(enter().size(), 1U);
  ASSERT_NE(found(), nullptr);
  EXPECT_EQ(found()->strategy, "packed");
  EXPECT_NE(found()->knobs.find("stages=3"), std::string::npos) << found()->knobs;
  EXPECT_EQ(found()->default_us, 44);
}

TEST_F(TuningWinners, AUsersKernelNeitherErasesARecordNorHidesTheSecondBest) {
  tuning_.set("a GPU", dual_gemm(suite_.problems[0]), {"two_pass", "", 1, 2});
  time("dual_gemm/packed", 44);
  time("dual_gemm/mine", 10);
  time("dual_gemm/packed[block_tokens=128,blocks_per_slot=2,math_warpgroups=2,split_k=1,stages=3]", 40);
  EXPECT_EQ(enter().size(), 1U);
  ASSERT_NE(found(), nullptr);
  EXPECT_EQ(found()->strategy, "packed");
}

TEST_F(TuningWinners, NumericsThatMustBeAskedForAreNeverChosen) {
  time("dual_gemm/packed", 44);
  time("dual_gemm/packed[numerics=fast]", 25);
  time("dual_gemm/packed[numerics=fast,stages=3]", 25);
  EXPECT_TRUE(enter().empty());
  EXPECT_EQ(found(), nullptr);
}

TEST_F(TuningWinners, ATieKeepsTheDefaultAndForgetsWhatWasKnown) {
  tuning_.set("a GPU", dual_gemm(suite_.problems[0]), {"two_pass", "", 1, 2});
  time("dual_gemm/packed", 44);
  time("dual_gemm/packed[block_tokens=128,blocks_per_slot=2,math_warpgroups=2,split_k=1,stages=3]", 43.5);
  EXPECT_TRUE(enter().empty());
  EXPECT_EQ(found(), nullptr);
}

TEST_F(TuningWinners, WithoutTheDefaultNothingIsSaid) {
  tuning_.set("a GPU", dual_gemm(suite_.problems[0]), {"two_pass", "", 1, 2});
  time("dual_gemm/two_pass", 110);
  time("dual_gemm/packed[block_tokens=128,blocks_per_slot=2,math_warpgroups=2,split_k=1,stages=3]", 40);
  EXPECT_TRUE(enter().empty());
  EXPECT_EQ(found()->us, 1) << "what was known stays";
}

TEST_F(TuningWinners, AFailedGateAndAWideIntervalCountForNothing) {
  time("dual_gemm/packed", 44);
  time("dual_gemm/two_pass", 20);
  run_.entries.back().gates.front().outcome = Outcome::failed;
  time("dual_gemm/packed[block_tokens=128,blocks_per_slot=2,math_warpgroups=2,split_k=1,stages=3]", 40, 0.12);
  EXPECT_TRUE(enter().empty());
}

TEST(CheckTuned, NamesTheSuiteWhoseOperationKeepsNoChoices) {
  const std::vector<Suite> suites{load_suite("origin"), load_suite("attention")};
  EXPECT_NO_THROW(check_tuned({suites.data(), 1}));
  EXPECT_EQ(error_of([&] { check_tuned(suites); }),
            "--tune: plan keeps no measured choices of attention: leave suite attention out");
}

TEST(ContestantLabel, IsReadBack) {
  for (const ContestantSpec& spec : {ContestantSpec{"dual_gemm", "packed"},
                                     ContestantSpec{"dual_gemm", "interleaved", {{"stages", "3"}, {"tma", "true"}}}}) {
    EXPECT_EQ(parse_label(label(spec)), spec);
  }
  for (const char* bad : {"packed", "a/b[c", "a/b[c]", "a[b/c]"}) {
    EXPECT_NE(error_of([&] { (void)parse_label(bad); }).find("write operation/strategy"), std::string::npos) << bad;
  }
}

}  // namespace
}  // namespace thresher::arena
