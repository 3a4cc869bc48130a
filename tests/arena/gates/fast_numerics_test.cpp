// Contestants of numerics `fast` are judged against the definition on the quantized operands, and by nothing milder.
#include <gtest/gtest.h>

#include <cmath>

#include "arena/gates/correctness.hpp"
#include "arena/honesty/honesty.hpp"
#include "arena/planted.hpp"
#include "reference/fold.hpp"

namespace thresher::arena {
namespace {

class DeclaredContestant final : public PlantedContestant {
 public:
  DeclaredContestant(Numerics numerics, Kernel kernel, FakeClock* clock = nullptr, double us = 0)
      : PlantedContestant("planted", std::move(kernel), clock, us), numerics_(numerics) {}
  Numerics numerics() const override { return numerics_; }

 private:
  Numerics numerics_;
};

Problem problem_of(Format tokens, Format out = Format::fp16) {
  return arena::problem_of(DualGemmProblem{40, 72, 208, tokens, Format::nvfp4, out, {}});
}

/// What the FP8 matrix unit makes of operands that are multiplied as they are.
void multiply(const KernelCall& call, const Tensor& a, const Tensor& b1, const Tensor& b2) {
  DualGemmProblem of_folded = call.problem;
  of_folded.a = of_folded.b = Format::fp32;
  call.write_all(reference::plain_low_precision(of_folded, a, b1, b2, reference::whole(call.problem),
                                                reference::Accumulation::float14_truncated)
                     .value);
}

void fast_kernel(const KernelCall& call) {
  const reference::Folded a = reference::fold_tokens(call.a);
  const reference::Folded b1 = reference::fold_weights(call.b1);
  const reference::Folded b2 = reference::fold_weights(call.b2);
  multiply(call, a.view, b1.view, b2.view);
}

/// The same with every folded weight of the gate passed through `change`.
Kernel with_gate(float (*change)(float)) {
  return [change](const KernelCall& call) {
    const reference::Folded a = reference::fold_tokens(call.a);
    reference::Folded b1 = reference::fold_weights(call.b1);
    const reference::Folded b2 = reference::fold_weights(call.b2);
    for (float& value : b1.values) {
      value = change(value);
    }
    multiply(call, a.view, b1.view, b2.view);
  };
}

Finding judge(const Kernel& kernel, Numerics numerics, const Problem& problem,
              Distribution distribution = Distribution::full_range) {
  FakeRig rig;
  return run_trial(make_trial(problem, distribution, {DeviceKind::cpu, numerics}, 11),
                   DeclaredContestant(numerics, kernel), rig)
      .finding;
}

TEST(FastNumerics, AnHonestKernelPassesEveryDistributionAndFormat) {
  for (const Format tokens : {Format::nvfp4, Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      for (const Distribution distribution : all_distributions) {
        const Finding finding = judge(fast_kernel, Numerics::fast, problem_of(tokens, out), distribution);
        EXPECT_TRUE(finding.correct) << name(tokens) << " " << name(out) << " " << name(distribution) << ": "
                                     << finding.sentence;
      }
    }
  }
}

TEST(FastNumerics, FastOutputsThatAreClaimedExactAreRefused) {
  for (const Distribution distribution : {Distribution::contest, Distribution::full_range, Distribution::normal}) {
    EXPECT_FALSE(judge(fast_kernel, Numerics::exact, problem_of(Format::nvfp4), distribution).correct)
        << name(distribution);
  }
}

TEST(FastNumerics, SmallIntegersMustMatchBitForBit) {
  const Problem problem = problem_of(Format::nvfp4);
  const Finding right = judge(fast_kernel, Numerics::fast, problem, Distribution::integers);
  EXPECT_EQ(right.evidence.rule, "exact");
  const Kernel last_bit = [](const KernelCall& call) {
    fast_kernel(call);
    static_cast<std::uint16_t*>(call.c.data)[123] ^= 1U;
  };
  EXPECT_EQ(judge(last_bit, Numerics::fast, problem, Distribution::integers).fault, "one element off");
}

TEST(FastNumerics, AWrongFoldIsRefused) {
  const Problem problem = problem_of(Format::fp16);
  const auto coarser = [](float value) {  // two bits of mantissa instead of three
    int exponent = 0;
    const float mantissa = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(mantissa * 8) / 8, exponent);
  };
  const auto saturates_early = [](float value) { return std::fmin(std::fmax(value, -240.0F), 240.0F); };
  EXPECT_FALSE(judge(with_gate(coarser), Numerics::fast, problem).correct);
  EXPECT_FALSE(judge(with_gate(saturates_early), Numerics::fast, problem).correct);
  EXPECT_TRUE(judge(with_gate([](float value) { return value; }), Numerics::fast, problem).correct);
}

TEST(FastNumerics, SwappedGateAndUpIsNamed) {
  const Kernel swapped = [](const KernelCall& call) {
    KernelCall other = call;
    std::swap(other.b1, other.b2);
    fast_kernel(other);
  };
  EXPECT_EQ(judge(swapped, Numerics::fast, problem_of(Format::nvfp4)).fault, "gate and up swapped");
}

TEST(FastNumerics, TheGateTellsTheErrorAgainstTheExactOperands) {
  Suite suite;
  suite.problems = {problem_of(Format::nvfp4)};
  suite.distributions = {Distribution::normal};
  FakeRig rig;
  const GateResult gate =
      judge_correctness(suite, DeclaredContestant(Numerics::fast, fast_kernel), rig, 42, [](auto, auto) {});
  EXPECT_EQ(gate.outcome, Outcome::passed) << gate.sentence;
  const auto& evidence = std::get<CorrectEvidence>(gate.evidence);
  EXPECT_EQ(evidence.numerics, Numerics::fast);
  const double error = evidence.trials.at(0).finding.error_against_exact.value();
  EXPECT_GT(error, 0.02);
  EXPECT_LT(error, 0.08);
  EXPECT_NE(gate.sentence.find("quantized operands"), std::string::npos) << gate.sentence;
}

TEST(FastNumerics, NobodyIsAccusedForWhatItDeclares) {
  HonestyOptions options;
  options.secret_seed = 99;
  options.calls_before_late_check = 5;
  options.wait_s = 0;
  constexpr double us = 1e5;  // long for the clock, so that few calls are made
  const auto accusation = [&](Numerics numerics) {
    FakeRig rig;
    const DeclaredContestant contestant(numerics, fast_kernel, &rig.fake_clock(), us);
    const auto last = probe_honesty(problem_of(Format::nvfp4), contestant, rig, options).back().accusation;
    return last ? last->cheat + ": " + last->sentence : "";
  };
  EXPECT_EQ(accusation(Numerics::fast), "");
  EXPECT_NE(accusation(Numerics::exact), "");
}

}  // namespace
}  // namespace thresher::arena
