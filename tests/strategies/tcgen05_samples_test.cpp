// The dual GEMM's strategies for Blackwell as they are planned, in the emulator: every sample and its edges, right and
// clean on many schedules.
#include <gtest/gtest.h>

#include <ostream>

#include "emulated_case.hpp"
#include "reference/tolerance.hpp"
#include "strategies/gemm/registry.hpp"

namespace thresher::strategies::gemm {
namespace {

struct Chosen {
  const Strategy<ProductProblem>* strategy;
  Sample<ProductProblem> sample;
};
void PrintTo(const Chosen& one, std::ostream* out) { *out << one.strategy->name() << " " << one.sample.knobs.text(); }

std::vector<Chosen> all_samples() {
  std::vector<Chosen> all;
  for (const Strategy<ProductProblem>* strategy : {&tcgen05_strategy(), &tcgen05_plain_strategy()}) {
    for (const Sample<ProductProblem>& sample : strategy->samples()) {
      if (sample.problem.is_dense()) {
        all.push_back({strategy, sample});
      }
    }
  }
  return all;
}

class PlannedForBlackwell : public ::testing::TestWithParam<Chosen> {
 protected:
  /// What the emulator finds, or what is wrong with the result; empty when nothing is.
  static std::string run_and_judge(const DualGemmProblem& problem, std::uint64_t seed) {
    const PlannedCall call = GetParam().strategy->plan(problem, GetParam().sample.knobs, device_spec("B200"));
    test::DualGemmCase host = test::DualGemmCase::random(
        problem, {.row_gap = problem.a == Format::nvfp4 ? 0 : 128 / bits(problem.a), .global_scales = false},
        static_cast<unsigned>(seed + 1));
    std::string found;
    for (const emulator::Finding& finding : test::emulate(call, host, seed).findings) {
      found += to_string(finding);
    }
    if (!found.empty()) {
      return found;
    }
    const reference::Verdict verdict = reference::judge_dual_gemm(
        problem, reference::Rule::general, host.a.view(), host.b1_gate.view(), host.b2_up.view(), host.c.view(),
        reference::whole(problem), reference::Accumulation::float32_truncated);
    return verdict.passed ? "" : verdict.explain();
  }
};

TEST_P(PlannedForBlackwell, ItsOwnSample) {
  for (const std::uint64_t seed : {0, 1, 7}) {
    ASSERT_EQ(run_and_judge(GetParam().sample.problem.dual_gemm(), seed), "") << seed;
  }
}

TEST_P(PlannedForBlackwell, ItsEdges) {
  for (const ProductProblem& problem :
       GetParam().strategy->edges(GetParam().sample.problem, GetParam().sample.knobs, device_spec("B200"))) {
    ASSERT_EQ(run_and_judge(problem.dual_gemm(), 2), "") << problem.rows << "x" << problem.n << "x" << problem.k;
  }
}

std::string name_of(const ::testing::TestParamInfo<Chosen>& of) {
  return std::string(of.param.strategy->name()) + "_" + std::to_string(of.index);
}

INSTANTIATE_TEST_SUITE_P(AllSamples, PlannedForBlackwell, ::testing::ValuesIn(all_samples()), name_of);

}  // namespace
}  // namespace thresher::strategies::gemm
