// The 16-bit dual GEMM run by the emulator: every strategy and knob, ragged edges, many schedules. Right and clean.
#include <gtest/gtest.h>

#include "emulated_case.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/tolerance.hpp"
#include "strategies/dual_gemm/formats.hpp"
#include "strategies/dual_gemm/fused/defaults.hpp"
#include "strategies/dual_gemm/fused/launch.hpp"
#include "strategies/dual_gemm/fused/obstacles.hpp"
#include "strategies/dual_gemm/fused/program.hpp"

namespace thresher::strategies::dual_gemm::fused {
namespace {

std::string title(const Config& config) { return knob_table().knobs(config).text(); }

class Emulated : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static const Config& config() { return small_config_list[GetParam()]; }

  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
    const DualGemmProblem problem{.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = format_of(config().operand),
                                  .b = format_of(config().operand),
                                  .out = format_of(config().output),
                                  .activation = {.kind = kind_of(config().activation)}};
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      const test::Layout layout{.row_gap = seed % 2 == 0 ? 0 : 8, .out_row_gap = seed % 3 == 0 ? 0 : 8};
      test::DualGemmCase host = test::DualGemmCase::random(problem, layout, static_cast<unsigned>(seed + 1));
      const Tensor c = host.c.view();
      const emulator::Report report = test::emulate(planned_call(problem, config()), host, seed);
      for (const emulator::Finding& finding : report.findings) {
        ADD_FAILURE() << title(config()) << ", " << m << "x" << n << "x" << k << ": " << to_string(finding);
      }
      const reference::Verdict verdict = reference::judge_dual_gemm(
          problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), c,
          reference::whole(problem), reference::Accumulation::float32_truncated);
      ASSERT_TRUE(host.c.gaps_intact());
      ASSERT_TRUE(verdict.passed) << title(config()) << ", " << m << "x" << n << "x" << k << ": " << verdict.explain();
    }
  }
};

TEST_P(Emulated, ConfigurationCanExist) {
  EXPECT_EQ(obstacles({.m = 128, .n = 64, .k = 256}, config(), device_spec("H200")), std::vector<std::string>{});
}
TEST_P(Emulated, OneTokenAndOneStepOfK) { clean_and_right(1, 24, 8, 4); }
TEST_P(Emulated, RaggedInEveryDimension) { clean_and_right(200, 72, 200, 8); }
TEST_P(Emulated, WholeTiles) { clean_and_right(128, 64, 256, 2); }
TEST_P(Emulated, OneBeyondATile) { clean_and_right(129, 136, 264, 2); }

INSTANTIATE_TEST_SUITE_P(AllConfigurations, Emulated, ::testing::Range(std::size_t{0}, small_config_list.size()));

}  // namespace
}  // namespace thresher::strategies::dual_gemm::fused
