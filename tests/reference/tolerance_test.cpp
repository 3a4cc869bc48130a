#include "reference/tolerance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "reference/activation.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "reference/operands.hpp"
#include "reference/output_format.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// An output in any output format.
class Output {
 public:
  Output(const DualGemmProblem& problem, const std::vector<double>& values) : out_(problem.out) {
    if (out_ == Format::fp32) {
      floats_.assign(values.begin(), values.end());
      view_ = Tensor::contiguous(floats_.data(), out_, {problem.m, problem.n});
      return;
    }
    for (const double value : values) {
      patterns_.push_back(pattern(value));
    }
    view_ = Tensor::contiguous(patterns_.data(), out_, {problem.m, problem.n});
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] const Tensor& view() const { return view_; }

 private:
  [[nodiscard]] std::uint16_t pattern(double value) const {
    const auto rounded = static_cast<float>(round_to(out_, value));
    return out_ == Format::fp16 ? formats::float_to_fp16(rounded) : formats::float_to_bf16(rounded);
  }

  Format out_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> patterns_;
  Tensor view_;
};

/// A problem of 130×200 with its reference and what an honest kernel might compute: float32 sums in another order.
class Honest : public testing::TestWithParam<DualGemmProblem> {
 protected:
  const DualGemmProblem problem = GetParam();
  const Operands x{problem};
  const std::vector<double> reference =
      dual_gemm_fast(problem, x.a.view(), x.b1.view(), x.b2.view(), whole(problem)).value;

  [[nodiscard]] std::vector<double> in_another_order(bool swapped, std::int64_t depth) const {
    std::vector<double> values;
    const auto dot = [&](std::int64_t row, const Tensor& b, std::int64_t column) {
      float sum = 0.0F;
      for (std::int64_t k = depth - 1; k >= 0; --k) {
        sum += static_cast<float>(formats::element(x.a.view(), row, k) * formats::element(b, column, k));
      }
      return sum * static_cast<float>(formats::global_scale(x.a.view()) * formats::global_scale(b));
    };
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        const float first = dot(row, x.b1.view(), column);
        const float second = dot(row, x.b2.view(), column);
        values.push_back(activate(swapped ? second : first, swapped ? first : second, problem.activation));
      }
    }
    return values;
  }

  [[nodiscard]] Verdict verdict(const std::vector<double>& values) const {
    const Output c(problem, values);
    return judge_dual_gemm(problem, Rule::general, x.a.view(), x.b1.view(), x.b2.view(), c.view(), whole(problem));
  }
};

TEST_P(Honest, SumsInAnotherOrderPass) {
  const Verdict right = verdict(in_another_order(false, problem.k));
  EXPECT_TRUE(right.passed) << right.explain();
  EXPECT_EQ(right.elements, problem.m * problem.n);
  EXPECT_LE(right.worst.ratio, 1.0);
}

TEST_P(Honest, SwappedGateAndUpFail) {
  const Verdict swapped = verdict(in_another_order(true, problem.k));
  EXPECT_FALSE(swapped.passed);
  EXPECT_GT(swapped.wrong, problem.m * problem.n / 2) << swapped.explain();
  EXPECT_GT(swapped.worst_tile.relative_error, 0.1);
}

TEST_P(Honest, ALostBlockOfKFails) {
  const Verdict lost = verdict(in_another_order(false, problem.k - 16));
  EXPECT_FALSE(lost.passed) << lost.explain();
}

TEST_P(Honest, OneWrongElementIsFoundInItsTile) {
  std::vector<double> values = reference;
  values[100 * 200 + 150] += 2.0;
  const Verdict one = verdict(values);
  EXPECT_FALSE(one.passed);
  EXPECT_EQ(one.wrong, 1);
  EXPECT_EQ(one.worst.row, 100);
  EXPECT_EQ(one.worst.column, 150);
  EXPECT_EQ(one.worst.reference, reference[100 * 200 + 150]);
  EXPECT_EQ(one.worst_tile.row, 64);
  EXPECT_EQ(one.worst_tile.column, 128);
  EXPECT_EQ(one.worst_tile.wrong, 1);
  EXPECT_EQ(one.worst_tile.elements, 66 * 72);  // the last tiles take the ragged rest in
  EXPECT_NE(one.explain().find("at [100, 150]"), std::string::npos) << one.explain();
}

INSTANTIATE_TEST_SUITE_P(
    Problems, Honest,
    testing::Values(DualGemmProblem{.m = 130, .n = 200, .k = 512},
                    DualGemmProblem{
                        .m = 130, .n = 200, .k = 256, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16},
                    DualGemmProblem{.m = 130, .n = 200, .k = 256, .a = Format::nvfp4, .b = Format::nvfp4},
                    DualGemmProblem{.m = 130,
                                    .n = 200,
                                    .k = 256,
                                    .a = Format::fp16,
                                    .b = Format::nvfp4,
                                    .out = Format::fp32,
                                    .activation = {.kind = ActivationKind::swiglu_clamped}}));

/// Gates, ups and what the definition makes of them.
Outputs outputs(const std::vector<double>& gates, const std::vector<double>& ups, const Activation& activation = {}) {
  Outputs made{gates, ups, {}};
  for (std::size_t i = 0; i < gates.size(); ++i) {
    made.value.push_back(output_element(gates[i], ups[i], activation));
  }
  return made;
}

/// Judges one row of values.
Verdict judge_row(Rule rule, Format out, const std::vector<double>& values, const Outputs& reference,
                  const Outputs& plain, const Activation& activation = {}) {
  const DualGemmProblem problem{
      .m = 1, .n = static_cast<std::int64_t>(values.size()), .k = 16, .out = out, .activation = activation};
  const Output c(problem, values);
  return judge(problem, rule, whole(problem), reference, plain, c.view());
}

/// One output that is its gate times 1.
bool passes(Rule rule, double value, double reference, double plain) {
  return judge_row(rule, Format::fp16, {value}, {{reference}, {1.0}, {reference}}, {{plain}, {1.0}, {plain}}).passed;
}

// From 64 on silu is the identity in both precisions, so an output below is gate times up.

TEST(Tolerance, AnErrorOfTheGateIsCarriedToEveryOutputOfItsTile) {
  const Outputs reference = outputs({64.0, 64.0}, {1.0, 2.0});
  const Outputs plain = outputs({64.25, 64.0}, {1.0, 2.0});
  // Twice 0.25 times the second up, and 2 ulps of 128, which are 0.25.
  EXPECT_TRUE(judge_row(Rule::general, Format::fp16, {64.0, 129.25}, reference, plain).passed);
  const Verdict beyond = judge_row(Rule::general, Format::fp16, {64.0, 129.375}, reference, plain);
  EXPECT_FALSE(beyond.passed);
  EXPECT_EQ(beyond.worst.bound, 1.25);
  EXPECT_EQ(beyond.worst.column, 1);
}

TEST(Tolerance, AnErrorOfUpIsCarriedToo) {
  const Outputs reference = outputs({64.0, 128.0}, {1.0, 2.0});
  const Outputs plain = outputs({64.0, 128.0}, {1.125, 2.0});
  EXPECT_EQ(judge_row(Rule::general, Format::fp16, {64.0, 256.0}, reference, plain).passed, true);
  EXPECT_EQ(judge_row(Rule::general, Format::fp16, {64.0, 300.0}, reference, plain).worst.bound, 32.0 + 0.5);
}

TEST(Tolerance, TheErrorOfTheFloat32ActivationCountsTwice) {
  const Activation clamped{.kind = ActivationKind::swiglu_clamped};
  const Outputs same = outputs({2.0}, {0.3F}, clamped);
  const double error = std::fabs(static_cast<double>(activate(2.0F, 0.3F, clamped)) - same.value[0]);
  ASSERT_GT(error, 0.0);
  const Verdict verdict = judge_row(Rule::general, Format::fp32, {5.0}, same, same, clamped);
  EXPECT_DOUBLE_EQ(verdict.worst.bound, 2.0 * error + 2.0 * ulp(Format::fp32, same.value[0]));
}

TEST(Tolerance, OneTileDoesNotExcuseAnother) {
  const Outputs reference = outputs(std::vector<double>(128, 64.0), std::vector<double>(128, 1.0));
  Outputs plain = reference;
  std::vector<double> values = reference.value;
  plain.gate[3] = 65.0;
  values[100] = 65.5;
  EXPECT_FALSE(judge_row(Rule::general, Format::fp16, values, reference, plain).passed);
  std::swap(values[100], values[60]);
  EXPECT_TRUE(judge_row(Rule::general, Format::fp16, values, reference, plain).passed);
}

TEST(Tolerance, TheContestBoundIsAThousandthPlusAThousandth) {
  EXPECT_TRUE(passes(Rule::contest, 0.0, 0.0009, 0.0));
  EXPECT_FALSE(passes(Rule::contest, 0.0, 0.0011, 0.0));
  EXPECT_TRUE(passes(Rule::contest, 1024.0, 1025.0, 0.0));
  EXPECT_FALSE(passes(Rule::contest, 1024.0, 1026.0, 0.0));
}

TEST(Tolerance, ExactMeansTheRoundedReference) {
  EXPECT_TRUE(passes(Rule::exact, 2048.0, 2049.0, 0.0));  // a tie, to even
  EXPECT_FALSE(passes(Rule::exact, 2050.0, 2049.0, 0.0));
  EXPECT_TRUE(passes(Rule::exact, -0.0, 0.0, 0.0));
  EXPECT_FALSE(passes(Rule::exact, 0x1p-24, 0.0, 0.0));
  EXPECT_TRUE(passes(Rule::exact, inf, 1e6, 0.0));
  EXPECT_FALSE(passes(Rule::exact, 65504.0, 1e6, 0.0));
}

TEST(Tolerance, NaNAndInfStandWhereTheReferenceHasThemAndNowhereElse) {
  for (const Rule rule : {Rule::general, Rule::contest, Rule::exact}) {
    EXPECT_TRUE(passes(rule, nan, nan, nan));
    EXPECT_TRUE(passes(rule, inf, inf, inf));
    EXPECT_TRUE(passes(rule, -inf, -inf, -inf));
    EXPECT_FALSE(passes(rule, inf, -inf, -inf));
    EXPECT_FALSE(passes(rule, inf, nan, nan));
    EXPECT_FALSE(passes(rule, nan, inf, inf));
    EXPECT_FALSE(passes(rule, 0.0, nan, nan));
    EXPECT_FALSE(passes(rule, 0.0, inf, inf));
    EXPECT_FALSE(passes(rule, nan, 0.0, 0.0));
    EXPECT_FALSE(passes(rule, inf, 0.0, 0.0));
  }
  const Verdict wrong = judge_row(Rule::general, Format::fp16, {64.0, nan}, outputs({64.0, 64.0}, {1.0, 1.0}),
                                  outputs({64.0, 64.0}, {1.0, 1.0}));
  EXPECT_EQ(wrong.worst.column, 1);
  EXPECT_EQ(wrong.worst.ratio, inf);
}

TEST(Tolerance, Float32SumsMayOverflowOnTheWayToAFiniteReference) {
  EXPECT_TRUE(passes(Rule::general, nan, 1.0, nan));
  EXPECT_TRUE(passes(Rule::general, 1.0, 1.0, nan));
  EXPECT_FALSE(passes(Rule::general, inf, 1.0, nan));
}

TEST(Tolerance, AtTheEdgeOfTheRangeInfIsAsGoodAsTheLargest) {
  EXPECT_TRUE(passes(Rule::general, inf, 65519.0, 65504.0));
  EXPECT_TRUE(passes(Rule::general, 65504.0, 65521.0, inf));
  EXPECT_FALSE(passes(Rule::general, -inf, 65519.0, 65504.0));
  EXPECT_FALSE(passes(Rule::general, inf, 65000.0, 65000.0));
  EXPECT_FALSE(passes(Rule::general, 65504.0, 70000.0, inf));
}

TEST(Tolerance, NothingToCompareIsCorrect) {
  const DualGemmProblem problem{.m = 0, .n = 4, .k = 16};
  const Output c(problem, {});
  const Verdict verdict = judge(problem, Rule::general, whole(problem), Outputs{}, Outputs{}, c.view());
  EXPECT_TRUE(verdict.passed);
  EXPECT_EQ(verdict.worst.row, -1);
  EXPECT_NE(verdict.explain().find("nothing to compare"), std::string::npos);
}

TEST(Tolerance, SizesThatDoNotFitAreRefused) {
  const DualGemmProblem problem{.m = 1, .n = 2, .k = 16};
  const Output c(problem, {64.0, 64.0});
  const Outputs two = outputs({64.0, 64.0}, {1.0, 1.0});
  const Outputs one = outputs({64.0}, {1.0});
  EXPECT_NO_THROW((void)judge(problem, Rule::contest, whole(problem), two, {}, c.view()));
  EXPECT_THROW((void)judge(problem, Rule::general, whole(problem), two, {}, c.view()), Error);
  EXPECT_THROW((void)judge(problem, Rule::contest, whole(problem), one, {}, c.view()), Error);
  EXPECT_THROW((void)judge(problem, Rule::contest, {{0}, {1, 2}}, two, {}, c.view()), Error);
  EXPECT_THROW((void)judge(problem, Rule::contest, {{1}, {0, 1}}, two, {}, c.view()), Error);
  EXPECT_THROW((void)judge({.m = 2, .n = 2, .k = 16}, Rule::contest, {{0}, {0, 1}}, two, {}, c.view()), Error);
}

}  // namespace
}  // namespace thresher::reference
