// The dual GEMM on tcgen05 in the emulator as it is planned, where tensors lie otherwise than in its samples: scales in
// blocks, outputs with gaps, fewer tokens than the plan is for, tokens that are read where they lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "emulated_case.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/tolerance.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::strategies::gemm {
namespace {

using test::DualGemmCase;
using test::Layout;
using test::Matrix;

const Strategy<ProductProblem>& strategy() {
  return *find_strategy<ProductProblem>(strategies_of(Product::dual_gemm, DeviceKind::cuda), "tcgen05");
}

std::vector<Sample<ProductProblem>> dense_samples() {
  std::vector<Sample<ProductProblem>> samples = strategy().samples();
  std::erase_if(samples, [](const Sample<ProductProblem>& sample) { return !sample.problem.is_dense(); });
  return samples;
}

PlannedCall planned(const DualGemmProblem& problem, const Knobs& knobs) {
  return strategy().plan(problem, knobs, device_spec("B200"));
}

/// What the emulator finds wrong with a call on `host`, and what is wrong with its result; empty when nothing is.
std::string run_and_judge(const PlannedCall& call, DualGemmCase& host, std::uint64_t seed) {
  host.c.poison();
  std::string found;
  for (const emulator::Finding& finding : test::emulate(call, host, seed).findings) {
    found += to_string(finding);
  }
  if (!found.empty()) {
    return found;
  }
  if (!host.c.gaps_intact()) {
    return "a gap between rows was written";
  }
  const reference::Verdict verdict = reference::judge_dual_gemm(
      host.problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
      reference::whole(host.problem), reference::Accumulation::float32_truncated);
  return verdict.passed ? "" : verdict.explain();
}

class PlannedTcgen05 : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static Sample<ProductProblem> sample() { return dense_samples()[GetParam()]; }
  [[nodiscard]] static bool promises_no_signs() { return *sample().knobs.find("unsigned_scales") == "true"; }
};

/// Operands whose scales have no signs where that was promised.
DualGemmCase random_case(const DualGemmProblem& problem, const Layout& layout, unsigned seed, bool has_signs) {
  DualGemmCase host = DualGemmCase::random(problem, layout, seed);
  if (!has_signs) {
    std::mt19937 random(seed);
    host.a = Matrix::nvfp4(
        problem.m, problem.k, layout, [&](auto, auto) { return static_cast<std::uint8_t>(random() % 16); },
        [&](auto, auto) { return static_cast<std::uint8_t>(0x28 + random() % 16); }, 1);
  }
  return host;
}

TEST_P(PlannedTcgen05, IsRightWithScalesInBlocksAndGapsBetweenOutputs) {
  for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    const Layout layout{.out_row_gap = 8, .scales = scales, .global_scales = false};
    DualGemmCase host = random_case(sample().problem.dual_gemm(), layout, 4, !promises_no_signs());
    EXPECT_EQ(run_and_judge(planned(sample().problem.dual_gemm(), sample().knobs), host, 3), "")
        << sample().knobs.text() << ", scales " << name(scales);
  }
}

// A plan serves every number of tokens up to its own.
TEST_P(PlannedTcgen05, ServesFewerTokensThanItWasMadeFor) {
  const DualGemmProblem most = sample().problem.dual_gemm();
  DualGemmProblem few = most;
  few.m = 3;
  DualGemmCase host = random_case(few, {.global_scales = false}, 5, !promises_no_signs());
  EXPECT_EQ(run_and_judge(planned(most, sample().knobs), host, 1), "") << sample().knobs.text();
}

INSTANTIATE_TEST_SUITE_P(Samples, PlannedTcgen05, ::testing::Range(std::size_t{0}, dense_samples().size()));

// Tokens of whole tiles whose scales lie in blocks: nothing is copied, and the workspace is not even looked at.
TEST(PlannedTcgen05InPlace, ReadsBlockedTokensWhereTheyLie) {
  const auto samples = dense_samples();
  const auto sample = std::find_if(samples.begin(), samples.end(),
                                   [](const auto& one) { return *one.knobs.find("unsigned_scales") == "true"; });
  ASSERT_NE(sample, samples.end());
  DualGemmProblem problem = sample->problem.dual_gemm();
  problem.m = std::stoi(*sample->knobs.find("block_tokens"));
  problem.k = 1024;
  DualGemmCase host = random_case(problem, {.scales = ScaleLayout::blocked, .global_scales = false}, 3, false);
  PlannedCall call = planned(problem, sample->knobs);
  call.steps.erase(call.steps.begin());  // what would prepare them
  call.preparation_steps = 0;
  EXPECT_EQ(run_and_judge(call, host, 2), "");
}

}  // namespace
}  // namespace thresher::strategies::gemm
