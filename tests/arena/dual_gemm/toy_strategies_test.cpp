// A strategy is a file and a line: two that no product has are registered here and found from everywhere.
#include <gtest/gtest.h>

#include "arena/audit/disassembler.hpp"
#include "arena/contestants/registry.hpp"
#include "arena/emulation/examine.hpp"
#include "arena/expect_error.hpp"
#include "arena/gates/audited.hpp"
#include "arena/gates/match.hpp"
#include "arena/gates/race_free.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/predictions/predictions.hpp"
#include "arena/rig/card_rig.hpp"
#include "core/device_spec.hpp"
#include "ops/forecast.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/gemm/registry.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/toy_strategies.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {
namespace {

using strategies::gemm::Product;

class RegisteredOnce : public ::testing::Environment {
  void SetUp() override {
    strategies::gemm::register_strategy(test::toy_gpu_strategy(), {Product::dual_gemm});
    strategies::gemm::register_strategy(test::toy_cpu_strategy(), {Product::dual_gemm});
  }
};
const ::testing::Environment* const environment = ::testing::AddGlobalTestEnvironment(new RegisteredOnce);

class ToyStrategies : public ::testing::Test {
 protected:
  static const DeviceSpec& h200() { return device_spec("H200"); }
  DualGemmProblem problem_{.m = 3, .n = 40, .k = 16, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  DualGemmOptions options_{.strategy = "toy"};
};

TEST_F(ToyStrategies, ArePlannedByName) {
  options_.knobs.set("threads", "32");
  const strategies::PlannedCall call = ops::planned_call(problem_, options_, h200());
  EXPECT_EQ(call.strategy, "toy");
  EXPECT_EQ(call.knobs, (Knobs{{"threads", "32"}}));
}

TEST_F(ToyStrategies, RunOnTheCpu) {
  problem_.out = Format::fp32;
  test::DualGemmCase host = test::DualGemmCase::random(problem_);
  const DualGemm gemm = plan(Device::cpu(), problem_, host.b1_gate.view(), host.b2_up.view(), options_);
  EXPECT_EQ(gemm.strategy(), "toy");
  gemm.run({}, host.a.view(), host.c.view());
  const std::vector<std::string> known = dual_gemm_strategies(Device::cpu());
  EXPECT_NE(std::find(known.begin(), known.end(), "toy"), known.end());
}

TEST_F(ToyStrategies, RunCleanInTheEmulator) {
  const std::vector<std::string> known = dual_gemm_operation().emulated()->strategies();
  EXPECT_NE(std::find(known.begin(), known.end(), "toy"), known.end());
  const Emulation emulation = dual_gemm_operation().emulated()->planned(problem_of(problem_), {"toy", ""}, h200());
  ASSERT_NE(emulation.kernel, nullptr) << emulation.why_none;
  constexpr std::array<std::uint64_t, 3> seeds{0, 1, 2};
  const Examination found = examine(*emulation.kernel, problem_of(problem_), seeds);
  EXPECT_EQ(found.finding, "");
  EXPECT_EQ(found.runs, 3);
}

TEST_F(ToyStrategies, ShowTheirMachineCode) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const MachineCode code = machine_code_of(ops::planned_call(problem_, options_, h200()), "sm_90a");
  ASSERT_EQ(code.kernels.size(), 1U) << code.not_judged;
}

/// On a card that is not here.
class ToyInATournament : public ToyStrategies {
 protected:
  ToyInATournament() {
    suite_.name = "tiny";
    suite_.problems = {problem_of(problem_)};
    suite_.distributions = {Distribution::contest};
  }
  GateResult judged(const Gate& gate) {
    const std::unique_ptr<Contestant> contestant = card_registry(h200())->create(spec_);
    Progress progress = Progress::silent();
    Match match{suite_, *contestant, *contestant, nullptr, *rig_, 1, {}, progress};
    return gate.judge(match);
  }
  Suite suite_;
  std::unique_ptr<Rig> rig_ = card_rig(h200());
  ContestantSpec spec_{"dual_gemm", "toy"};
};

TEST_F(ToyInATournament, IsFreeOfRaces) {
  const GateResult result = judged(*make_race_free_gate());
  EXPECT_EQ(result.outcome, Outcome::passed) << result.sentence;
}

TEST_F(ToyInATournament, IsAudited) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const GateResult result = judged(*make_audited_gate());
  EXPECT_EQ(result.outcome, find_disassembler().found() ? Outcome::passed : Outcome::not_judged) << result.sentence;
}

TEST_F(ToyInATournament, IsJudgedAsFarAsNothingIsRun) {
  const std::unique_ptr<Contestant> contestant = card_registry(h200())->create(spec_);
  Progress progress = Progress::silent();
  Match match{suite_, *contestant, *contestant, nullptr, *rig_, 1, {}, progress};
  const Entry entry = hold_match(match, standard_gates(), {});
  EXPECT_EQ(entry.verdict, Verdict::not_judged);
  const bool compiles = runtime::nvrtc_status().problem.empty();
  for (const GateResult& gate : entry.gates) {
    const bool is_judged = gate.kind == GateKind::feasible || gate.kind == GateKind::race_free ||
                           (gate.kind == GateKind::compiles && compiles) ||
                           (gate.kind == GateKind::audited && compiles && find_disassembler().found());
    EXPECT_EQ(gate.outcome, is_judged ? Outcome::passed : Outcome::not_judged) << name(gate.kind) << gate.sentence;
    if (traits(gate.kind).needs_a_run) {
      EXPECT_EQ(gate.sentence,
                "nothing of it was run: H200 (sm_90a) is a card of the planner's table and not this machine's");
    }
  }
}

TEST_F(ToyInATournament, IsNotEnteredOnACardThatItIsNotMadeFor) {
  const auto registry = card_registry(device_spec("B200"));
  EXPECT_EQ(registry->create(spec_)->unsupported_reason(suite_.problems.front()),
            "strategy toy takes bf16 and silu on a Hopper GPU");
  EXPECT_NE(error_of([&] {
              (void)registry->create({"dual_gemm", "none"});
            }).find("contestant dual_gemm/none: there is no such strategy on B200, expected one of "),
            std::string::npos);
}

TEST_F(ToyInATournament, IsPredictedBeforeItRuns) {
  const Forecaster forecaster{.device = &h200()};
  const auto records = predict_times(forecaster, suite_, spec_, nullptr, 0);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].contestant, "dual_gemm/toy");
  ASSERT_TRUE(records[0].predicted_us) << records[0].why;
  EXPECT_GT(*records[0].predicted_us, 0);
}

}  // namespace
}  // namespace thresher::arena
