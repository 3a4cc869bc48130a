// `thresher plan`, `judge`, `audit` and `emulate` as a user runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "runtime/nvrtc.hpp"

namespace thresher::testing {
namespace {

Outcome run(const std::string& arguments) {
  const ScratchFolder folder;
  return run_thresher(folder.path(), arguments);
}

const std::string sources = THRESHER_SOURCE_DIR;

TEST(PlanCommand, NamesAStrategyItsTimeAndWhy) {
  const Outcome outcome = run("plan 256x4096x7168 --device H200");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" us  packed "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("bound by"), std::string::npos);
  EXPECT_NE(outcome.out.find("strategies cannot run it; --refused says why"), std::string::npos);
}

// A single token of NVFP4 takes slots of 256 elements along K, whatever numerics fast would take.
TEST(PlanCommand, SaysWhatPlanChoosesOfNvfp4Decode) {
  const Outcome outcome = run("plan 1x14336x4096 --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto first = nlohmann::json::parse(outcome.out)["choices"][0];
  EXPECT_EQ(first["strategy"], "packed");
  const std::string knobs = first["knobs"];
  for (const char* knob : {"blocks_per_slot=4", "block_tokens=8", "numerics=exact", "blocks_resident=2"}) {
    EXPECT_NE(knobs.find(knob), std::string::npos) << knob << " in " << knobs;
  }
}

TEST(PlanCommand, KnowsAttention) {
  const Outcome small = run("plan attention --heads 8 --queries 512");
  EXPECT_EQ(small.status, 0) << small.err;
  EXPECT_NE(small.out.find(" us  split"), std::string::npos) << small.out;
  EXPECT_NE(run("plan attention --heads 16 --queries 4096 --head-dim 128").out.find(" us  pipelined"),
            std::string::npos);
  EXPECT_NE(
      run("plan attention --batch 32 --heads 32 --kv-heads 8 --queries 1 --keys 4096 --head-dim 128 --page-size 16 "
          "--fp8-keys --sinks")
          .out.find(" us  stream_k"),
      std::string::npos);
}

TEST(PlanCommand, TakesTheQueriesOfAllSequencesTogether) {
  const std::string decoding =
      "plan attention --batch 64 --heads 32 --kv-heads 8 --keys 8192 --head-dim 128 --page-size 64";
  EXPECT_EQ(run(decoding + " --causal --total-queries 64").out, run(decoding + " --causal --queries 1").out);
  const Outcome one_more = run(decoding + " --causal --total-queries 65");
  EXPECT_EQ(one_more.status, 0) << one_more.err;
  EXPECT_LT(one_more.out.find(" us  stream_k"), one_more.out.find(" us  pipelined")) << one_more.out;
}

TEST(PlanCommand, ListsTheKnobsOfEveryStrategy) {
  const Outcome outcome = run("plan --help-knobs");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\npingpong: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("block_tokens         the most tokens of a tile: 8, 16, 32, 64, 96, 128, 160, 192, 256"),
            std::string::npos);
}

TEST(PlanCommand, ListsTheKnobsOfAttentionToo) {
  const Outcome outcome = run("plan attention --help-knobs");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("pipelined: "), std::string::npos) << outcome.out;
  const Outcome nothing = run("plan attention");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_EQ(nothing.err, "thresher: plan attention: --queries is missing: say how many a sequence has\n");
}

TEST(PlanCommand, AnExtentThatCannotBeIsSaidWithItsRange) {
  const Outcome outcome = run("plan attention --queries 0");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "thresher: --queries: Value 0 not in range 1 to 16777216 (see thresher plan attention --help)\n");
}

/// Little is written when the command ends, much while it prints; help is printed by the parser.
TEST(PlanCommand, SaysWhenItsOutputCannotBeWritten) {
  const ScratchFolder folder;
  for (const char* words : {"plan 1x14336x4096", "plan --help-knobs", "plan --help", "--version"}) {
    const std::string command =
        "cd '" + folder.path().string() + "' && '" THRESHER_BINARY "' " + words + " >/dev/full 2>stderr.txt";
    const int raw = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(raw), 2) << words;
    EXPECT_EQ(slurp(folder / "stderr.txt"), "thresher: standard output cannot be written: No space left on device\n")
        << words;
  }
}

TEST(PlanCommand, HasItsStatusWhereNothingCanBeSaid) {
  const ScratchFolder folder;
  for (const char* const errors : {"2>/dev/full", "2>&-"}) {
    for (const char* const words : {"plan x", "plan --device x 64x64x64", "no-command"}) {
      const std::string command =
          "cd '" + folder.path().string() + "' && '" THRESHER_BINARY "' " + words + " " + errors;
      const int raw = std::system(command.c_str());
      EXPECT_TRUE(WIFEXITED(raw)) << command;
      EXPECT_EQ(WEXITSTATUS(raw), 2) << command;
    }
  }
}

TEST(PlanCommand, JsonIsForMachines) {
  const Outcome outcome = run("plan 1x14336x4096 --device B200 --a nvfp4 --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["device"], "B200");
  ASSERT_FALSE(json["choices"].empty());
  EXPECT_GT(json["choices"][0]["predicted_us"].get<double>(), 0);
  EXPECT_FALSE(json["choices"][0]["calibrated"].get<bool>());
}

TEST(PlanCommand, WhatCannotExistFailsItsGateWithTheNumber) {
  const Outcome outcome = run("plan 256x4096x7168 --strategy packed --knobs 'block_tokens=256 stages=9'");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("232448"), std::string::npos) << outcome.out;
}

TEST(PlanCommand, BadInputIsOneSentence) {
  for (const std::string& bad :
       {std::string("plan 256x4096"), std::string("plan 0x8x8"), std::string("plan 8x8x8 --device A100"),
        std::string("plan 8x8x8 --a int4"), std::string("plan 8x8x8 --strategy packed --knobs sideways"),
        std::string("plan 8x8x8 --strategy sideways"), std::string("plan 8x8x8 --calibration nowhere.toml")}) {
    const Outcome outcome = run(bad);
    EXPECT_EQ(outcome.status, 2) << bad;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(CalibrateCommand, NeedsAGpu) {
  const Outcome outcome = run("calibrate --device cpu");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("calibrate needs a GPU"), std::string::npos) << outcome.err;
}

TEST(ProfileCommand, NeedsAGpu) {
  const Outcome outcome = run("profile 64x64x64 --device cpu");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("profile needs a GPU"), std::string::npos) << outcome.err;
}

TEST(JudgeCommand, RanksTheOriginsPitches) {
  const Outcome outcome = run("judge '" + sources + "'/pitches/origin/*.toml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("More pipeline stages"), std::string::npos) << outcome.out;
  const Outcome of_16_bits = run("judge --suite origin_bf16 '" + sources + "/pitches/origin/tma_store_epilogue.toml'");
  EXPECT_NE(of_16_bits.out.find("is the most it could give"), std::string::npos) << of_16_bits.out;
  const Outcome json = run("judge --json '" + sources + "'/pitches/origin/*.toml");
  EXPECT_EQ(nlohmann::json::parse(json.out).size(), 8U);
  EXPECT_EQ(run("judge nowhere.toml").status, 2);
}

TEST(AuditCommand, ReadsAListingAndFailsAKernelLikeTheOrigins) {
  const std::string listing = "'" + sources + "/tests/arena/audit/origin_like.sass'";
  const Outcome failed = run("audit " + listing + " --dynamic-shared 49152 --expect matrix=HGMMA");
  EXPECT_EQ(failed.status, 1) << failed.err;
  EXPECT_NE(failed.out.find("49152 bytes of shared memory are declared, and the machine code never uses them"),
            std::string::npos)
      << failed.out;
  const Outcome passed =
      run("audit '" + sources + "/tests/arena/audit/dual_gemm.sass' --expect matrix=HGMMA --expect min_tma_loads=1");
  EXPECT_EQ(passed.status, 0) << passed.out << passed.err;
  EXPECT_EQ(nlohmann::json::parse(run("audit --json " + listing).out)[0]["kernel"], "origin_like");
  EXPECT_EQ(run("audit " + listing + " --kernel other").status, 2);
  EXPECT_EQ(run("audit nowhere.cubin").status, 2);
  EXPECT_EQ(run("audit " + listing + " --expect speed=9").status, 2);
}

TEST(AuditCommand, ReadsBlackwellsMachineCodeOfAFamily) {
  const auto listing = [](const char* name) {
    return "'" + sources + "/tests/arena/audit/" + name + ".sass' --dynamic-shared 53376 --arch sm_100f ";
  };
  const std::string expected =
      "--expect matrix=UTCOMMA --expect tensor_products=4 --expect scale_copies=8 --expect pair=false "
      "--expect min_commits=2 --expect tensor_loaded_bytes=8192";
  const Outcome clean = run("audit " + listing("tensor_ring") + expected);
  EXPECT_EQ(clean.status, 0) << clean.out << clean.err;
  EXPECT_NE(clean.out.find("R2UR in the loop of the products"), std::string::npos) << clean.out;
  const Outcome repeated = run("audit " + listing("tensor_ring_not_elected") + expected);
  EXPECT_EQ(repeated.status, 1) << repeated.err;
  EXPECT_NE(repeated.out.find("14 tcgen05 instructions, 0 allowed, stand in a loop"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run("audit --json " + listing("tensor_ring")).out)[0]["tensor"]["commits"], 2);
  EXPECT_EQ(run("audit '" + sources + "/tests/arena/audit/tensor_ring.sass' --arch sm_103a").status, 2);
}

TEST(AuditCommand, ReadsTheLibrarysOwnKernelsOfAnArchitecture) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const Outcome outcome = run("audit --arch sm_90a --strategy split --json");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const nlohmann::json kernels = nlohmann::json::parse(outcome.out);
  EXPECT_GT(kernels.size(), 0U);
  EXPECT_GT(kernels[0]["registers"], 0);
  const Outcome none = run("audit --arch sm_100f --strategy split");
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("the library has no kernel of split for sm_100f whose name contains \"\""), std::string::npos)
      << none.err;
}

TEST(EmulateCommand, RunsWhatIsMadeForAnArchitecture) {
  const Outcome hopper = run("emulate dual_gemm --strategy pingpong --arch sm_90a --schedules 1 --m 8 --n 8 --k 16");
  EXPECT_EQ(hopper.status, 0) << hopper.err;
  EXPECT_NE(hopper.out.find("clean in 1 schedules"), std::string::npos) << hopper.out;
  const Outcome none = run("emulate dual_gemm --strategy pingpong --arch sm_103a");
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("dual_gemm pingpong has no kernels for GB300 (sm_103a)"), std::string::npos) << none.err;
}

TEST(PlanCommand, TakesADeviceOfTheTableByEitherName) {
  EXPECT_EQ(run("plan 256x4096x7168 --device-table b200 --json").out,
            run("plan 256x4096x7168 --device B200 --json").out);
}

}  // namespace
}  // namespace thresher::testing
