// A strategy is a file and a line: two that no product has are registered here and found from everywhere.
#include <gtest/gtest.h>

#include "arena/dual_gemm/machine_code.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/emulation/examine.hpp"
#include "core/device_spec.hpp"
#include "ops/forecast.hpp"
#include "runtime/nvrtc.hpp"
#include "strategies/dual_gemm/registry.hpp"
#include "support/dual_gemm_case.hpp"
#include "support/toy_strategies.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {
namespace {

class ToyStrategies : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    strategies::dual_gemm::register_strategy(test::toy_gpu_strategy());
    strategies::dual_gemm::register_strategy(test::toy_cpu_strategy());
  }

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
  const MachineCode code = dual_gemm_machine_code(h200(), "sm_90a", problem_, options_);
  ASSERT_EQ(code.kernels.size(), 1U) << code.not_judged;
}

}  // namespace
}  // namespace thresher::arena
