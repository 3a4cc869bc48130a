// FP8 on a GPU is judged by sums that are promoted every 128 of K, and without promotion only where `fast` is declared.
#include <gtest/gtest.h>

#include "arena/gates/correctness.hpp"
#include "arena/planted.hpp"
#include "reference/tolerance.hpp"

namespace thresher::arena {
namespace {

using reference::Accumulation;

Kernel summing(Accumulation accumulation) {
  return [accumulation](const KernelCall& call) {
    call.write_all(reference::plain_low_precision(call.problem, call.a, call.b1, call.b2,
                                                  reference::whole(call.problem), accumulation)
                       .value);
  };
}

Finding judge(Accumulation accumulation, Numerics numerics, const DualGemmProblem& problem, Distribution distribution) {
  FakeRig rig;
  return run_trial(make_trial(problem_of(problem), distribution, {DeviceKind::cuda, numerics}, 11),
                   PlantedContestant("planted", summing(accumulation)), rig)
      .finding;
}

TEST(Fp8Numerics, HonestKernelsPassEveryDistributionAndFormat) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    const DualGemmProblem problem{40, 72, 528, format, format, Format::bf16, {}};
    for (const Distribution distribution : all_distributions) {
      for (const auto& [accumulation, numerics] :
           {std::pair{Accumulation::float14_promoted, Numerics::exact},
            std::pair{Accumulation::float32_truncated, Numerics::exact},
            std::pair{Accumulation::float14_truncated, Numerics::fast}}) {
        const Finding finding = judge(accumulation, numerics, problem, distribution);
        EXPECT_TRUE(finding.correct) << name(format) << " " << name(distribution) << " " << name(numerics) << ": "
                                     << finding.sentence;
      }
    }
  }
}

TEST(Fp8Numerics, SumsThatAreNotPromotedAreNotExact) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    const DualGemmProblem problem{40, 72, 4096, format, format, Format::fp32, {}};
    EXPECT_FALSE(judge(Accumulation::float14_truncated, Numerics::exact, problem, Distribution::normal).correct)
        << name(format);
  }
}

}  // namespace
}  // namespace thresher::arena
