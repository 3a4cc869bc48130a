// The dual GEMM of 16 bits and of FP8 run by the emulator: every strategy and knob, ragged edges, many schedules. Right
// and clean.
#include <gtest/gtest.h>

#include "core/integers.hpp"
#include "emulated_case.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/plain_sums.hpp"
#include "reference/tolerance.hpp"
#include "strategies/gemm/formats.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/wgmma/fused/kernel.hpp"
#include "strategies/gemm/wgmma/fused/tiles.hpp"
#include "strategies/gemm/wgmma/kernel.hpp"

namespace thresher::strategies::gemm::fused {
namespace {

std::string title(const Config& config) { return knob_table().knobs(config).text(); }

/// Those of one matrix are tested as products of the arena.
std::vector<Config> dual_configs() {
  std::vector<Config> configs(small_config_list.begin(), small_config_list.end());
  std::erase_if(configs, [](const Config& config) { return config.matrices != 2; });
  return configs;
}

class Emulated : public ::testing::TestWithParam<std::size_t> {
 protected:
  /// Launched as a dependent, which asks most of it.
  [[nodiscard]] static Config config() {
    Config config = dual_configs().at(GetParam());
    config.dependent_launch = true;
    return config;
  }

  static DualGemmProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {.m = m,
            .n = n,
            .k = k,
            .a = format_of(config().operand),
            .b = format_of(config().operand),
            .out = format_of(config().output),
            .activation = {.kind = kind_of(config().activation)}};
  }

  static void clean_and_right(test::DualGemmCase& host, std::uint64_t seed) {
    const DualGemmProblem& problem = host.problem;
    const std::string what = title(config()) + ", " + std::to_string(problem.m) + "x" + std::to_string(problem.n) +
                             "x" + std::to_string(problem.k) + ": ";
    const emulator::Report report = test::emulate(planned_call(problem, config()), host, seed);
    for (const emulator::Finding& finding : report.findings) {
      ADD_FAILURE() << what << to_string(finding);
    }
    const reference::Verdict verdict = reference::judge_dual_gemm(
        problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
        reference::whole(problem), reference::Accumulation::float32_truncated);
    ASSERT_TRUE(host.c.gaps_intact()) << what;
    ASSERT_TRUE(verdict.passed) << what << verdict.explain();
  }

  static void clean_and_right(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t schedules) {
    for (std::uint64_t seed = 0; seed < schedules && !HasFatalFailure(); ++seed) {
      const test::Layout layout{.row_gap = seed % 2 == 0 ? 0 : 8, .out_row_gap = seed % 3 == 0 ? 0 : 8};
      test::DualGemmCase host =
          test::DualGemmCase::random(problem_of(m, n, k), layout, static_cast<unsigned>(seed + 1));
      clean_and_right(host, seed);
    }
  }
};

TEST_P(Emulated, ConfigurationCanExist) {
  const auto* const strategy =
      find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), name(config().order));
  EXPECT_EQ(strategy->infeasible_reasons(problem_of(128, 64, 256), knob_table().knobs(config()), device_spec("H200")),
            std::vector<std::string>{});
}
TEST_P(Emulated, OneTokenAndOneStepOfK) { clean_and_right(1, 24, 8, 4); }
TEST_P(Emulated, RaggedInEveryDimension) { clean_and_right(200, 72, 200, 8); }
TEST_P(Emulated, WholeTiles) { clean_and_right(128, 64, 256, 2); }
TEST_P(Emulated, OneBeyondATile) { clean_and_right(129, 136, 264, 2); }

/// Threads store pairs of outputs; the last of a row is alone. TMA takes no such rows.
TEST_P(Emulated, OddOutputs) {
  if (config().epilogue == Epilogue::simt) {
    clean_and_right(130, 75, 72, 2);
  }
}

/// Rows that do not start on 16 bytes take no stores of 16 bytes.
TEST_P(Emulated, OutputRowsAnyDistanceApart) {
  if (config().epilogue == Epilogue::simt) {
    for (const std::int64_t gap : {1, 2, 4}) {
      test::DualGemmCase host = test::DualGemmCase::random(problem_of(66, 40, 72), {.out_row_gap = gap});
      clean_and_right(host, 1);
    }
    // Rows that start there, but do not end there: in four groups of 8, which are stored together, and behind them.
    for (const std::int64_t n : {67, 75}) {
      test::DualGemmCase host = test::DualGemmCase::random(problem_of(66, n, 72), {.out_row_gap = 5});
      clean_and_right(host, 1);
    }
  }
}

TEST_P(Emulated, ANaNOfTheGateAloneOrOfUpAloneReachesItsOutputs) {
  constexpr std::uint16_t nan = 0x7FFF;
  test::DualGemmCase host = test::DualGemmCase::random(problem_of(65, 40, 72));
  host.b1_gate.set_pattern(3, 2, nan);
  host.b2_up.set_pattern(34, 71, nan);
  clean_and_right(host, 1);
}

// TMA cannot address rows of 73 elements: the call takes the kernel whose threads store.
TEST(EmulatedAlternative, StoresWhatTheCopyEngineCannot) {
  const Config config = default_config_list.front();
  ASSERT_EQ(config.epilogue, Epilogue::tma);
  const DualGemmProblem problem{.m = 130, .n = 72, .k = 72, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
  test::DualGemmCase host = test::DualGemmCase::random(problem, {.out_row_gap = 1});
  const emulator::Report report = test::emulate(planned_call(problem, config), host, 1);
  ASSERT_TRUE(report.clean()) << to_string(report.findings.front());
  const reference::Verdict verdict = reference::judge_dual_gemm(
      problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(problem), reference::Accumulation::float32_truncated);
  EXPECT_TRUE(verdict.passed) << verdict.explain();
  EXPECT_TRUE(host.c.gaps_intact());
}

/// A sample whose outputs are float32, which a launch behind the product quantizes, in every format.
TEST(EmulatedQuantized, OutputsInEveryFormat) {
  int checked = 0;
  for (const Sample<ProductProblem>& sample : interleaved_strategy().samples()) {
    for (const Format out : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block, Format::nvfp4}) {
      if (sample.problem.out != Format::fp32) {
        continue;
      }
      DualGemmProblem problem = sample.problem.dual_gemm();
      problem.out = out;
      problem.n = round_up(problem.n, std::int64_t{format_traits(out).n_multiple});
      const PlannedCall call = interleaved_strategy().plan(problem, sample.knobs, device_spec("H200"));
      ASSERT_EQ(call.steps.size(), 2U);
      problem.m -= 2;  // fewer rows than it was planned for
      test::DualGemmCase host = test::DualGemmCase::random(problem, {.out_row_gap = 16, .out_powers_of_two = true});
      const emulator::Report report = test::emulate(call, host, 3);
      EXPECT_TRUE(report.clean()) << name(out) << to_string(report.findings.front());
      const reference::Verdict verdict = reference::judge_dual_gemm(
          problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
          reference::whole(problem), reference::Accumulation::float32_truncated);
      EXPECT_TRUE(verdict.passed) << name(out) << verdict.explain();
      EXPECT_TRUE(host.c.gaps_intact());
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(AllConfigurations, Emulated, ::testing::Range(std::size_t{0}, dual_configs().size()));

}  // namespace
}  // namespace thresher::strategies::gemm::fused

namespace thresher::strategies::gemm {
namespace {

struct OneGroupSample {
  const Strategy<ProductProblem>* strategy;
  DualGemmProblem problem;
  Knobs knobs;
};

std::vector<OneGroupSample> one_group_samples() {
  std::vector<OneGroupSample> found;
  for (const Strategy<ProductProblem>* const strategy : {&columns_strategy(), &rows_strategy()}) {
    for (const Sample<ProductProblem>& sample : of_product(strategy->samples(), Product::dual_gemm)) {
      found.push_back({strategy, sample.problem.dual_gemm(), sample.knobs});
    }
  }
  return found;
}

thresher::Numerics numerics_of(const OneGroupSample& sample) {
  const std::string* const numerics = sample.knobs.find("numerics");
  return numerics != nullptr && *numerics == "fast" ? thresher::Numerics::fast : thresher::Numerics::exact;
}

/// For the names of tests.
[[maybe_unused]] void PrintTo(const OneGroupSample& sample, std::ostream* out) {
  *out << sample.strategy->name() << " " << sample.knobs.text();
}

/// The grouped kernels without offsets.
class EmulatedOneGroup : public ::testing::TestWithParam<OneGroupSample> {
 protected:
  static void clean_and_right(const DualGemmProblem& problem, std::uint64_t seed) {
    const OneGroupSample& sample = GetParam();
    const std::string what = std::string(sample.strategy->name()) + " " + sample.knobs.text() + ", " +
                             std::to_string(problem.m) + "x" + std::to_string(problem.n) + "x" +
                             std::to_string(problem.k) + ": ";
    const test::Layout layout{.row_gap = seed % 2 == 0 ? 0 : 16,
                              .out_row_gap = seed % 3 == 0 ? 0 : 8,
                              .scales = seed % 2 == 0 ? ScaleLayout::row_major : ScaleLayout::column_major};
    test::DualGemmCase host = test::DualGemmCase::random(problem, layout, static_cast<unsigned>(seed + 1));
    const PlannedCall call = sample.strategy->plan(problem, sample.knobs, device_spec("H200"));
    EXPECT_EQ(call.workspace_bytes() > 0, call.steps.size() > 1) << what;  // what lies between product and rounding
    const emulator::Report report = test::emulate(call, host, seed);
    for (const emulator::Finding& finding : report.findings) {
      ADD_FAILURE() << what << to_string(finding);
    }
    const reference::Verdict verdict = reference::judge_dual_gemm(
        problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
        reference::whole(problem),
        reference::plain_sums(problem.a, problem.b, numerics_of(sample), DeviceKind::cuda).accumulation);
    ASSERT_TRUE(host.c.gaps_intact()) << what;
    ASSERT_TRUE(verdict.passed) << what << verdict.explain();
  }
};

TEST_P(EmulatedOneGroup, ItsOwnSample) {
  for (std::uint64_t seed = 0; seed < 4 && !HasFatalFailure(); ++seed) {
    clean_and_right(GetParam().problem, seed);
  }
}

TEST_P(EmulatedOneGroup, EdgesOfItsTile) {
  const OneGroupSample& sample = GetParam();
  for (const ProductProblem& problem : sample.strategy->edges(sample.problem, sample.knobs, device_spec("H200"))) {
    for (const std::uint64_t seed : {4, 5}) {
      clean_and_right(problem.dual_gemm(), seed);
    }
  }
}

TEST_P(EmulatedOneGroup, OneRow) {
  DualGemmProblem problem = GetParam().problem;
  problem.m = 1;
  clean_and_right(problem, 2);
}

TEST_P(EmulatedOneGroup, ScalesOfWholeRowsAreFoundBehindTheProduct) {
  DualGemmProblem problem = GetParam().problem;
  if (problem.out != Format::fp32) {
    return;
  }
  problem.out = Format::fp8_row;
  clean_and_right(problem, 1);
  clean_and_right(problem, 3);
}

INSTANTIATE_TEST_SUITE_P(AllSamples, EmulatedOneGroup, ::testing::ValuesIn(one_group_samples()),
                         [](const auto& tested) {
                           return std::string(tested.param.strategy->name()) + std::to_string(tested.index);
                         });

}  // namespace
}  // namespace thresher::strategies::gemm
