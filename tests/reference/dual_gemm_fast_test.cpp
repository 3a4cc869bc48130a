#include "reference/dual_gemm_fast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "formats/elements.hpp"
#include "reference/activation.hpp"
#include "reference/dual_gemm.hpp"
#include "reference/operands.hpp"
#include "reference/output_format.hpp"

namespace thresher::reference {
namespace {

struct Case {
  DualGemmProblem problem;
  int threads;
};

void PrintTo(const Case& shape, std::ostream* out) {
  PrintTo(shape.problem, out);
  *out << " on " << shape.threads << " threads";
}

class DualGemmFast : public testing::TestWithParam<Case> {};

TEST_P(DualGemmFast, IsTheDefinitionBitForBit) {
  const DualGemmProblem& problem = GetParam().problem;
  const Operands x(problem);
  EXPECT_EQ(dual_gemm_fast(problem, x.a.view(), x.b1.view(), x.b2.view(), whole(problem), GetParam().threads).value,
            dual_gemm(problem, x.a.view(), x.b1.view(), x.b2.view()));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DualGemmFast,
    testing::Values(Case{{.m = 1, .n = 1, .k = 16}, 1}, Case{{.m = 0, .n = 5, .k = 16}, 2},
                    Case{{.m = 7, .n = 33, .k = 136}, 3},
                    Case{{.m = 40, .n = 65, .k = 272, .a = Format::nvfp4, .b = Format::nvfp4}, 2},
                    Case{{.m = 13, .n = 31, .k = 128, .a = Format::bf16, .b = Format::nvfp4}, 0},
                    Case{{.m = 515, .n = 34, .k = 32, .a = Format::bf16, .b = Format::bf16}, 2},
                    Case{{.m = 6,
                          .n = 32,
                          .k = 256,
                          .a = Format::fp16,
                          .b = Format::nvfp4,
                          .activation = {.kind = ActivationKind::swiglu_clamped}},
                         2},
                    Case{{.m = 12, .n = 64, .k = 64, .activation = {.kind = ActivationKind::gelu_tanh}}, 2}));

TEST(DualGemmFastRegion, GivesTheChosenElements) {
  const DualGemmProblem problem{.m = 90, .n = 140, .k = 48};
  const Operands x(problem);
  const std::vector<double> all = dual_gemm(problem, x.a.view(), x.b1.view(), x.b2.view());
  const Region region{{0, 3, 64, 89}, {1, 2, 70, 139}};
  const std::vector<double> some = dual_gemm_fast(problem, x.a.view(), x.b1.view(), x.b2.view(), region).value;
  ASSERT_EQ(some.size(), 16U);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      EXPECT_EQ(some[row * 4 + column],
                all[static_cast<std::size_t>(region.rows[row] * problem.n + region.columns[column])]);
    }
  }
}

/// float32 sums as both kinds of device carry them, written out.
float float32_sum(Accumulation accumulation, const Tensor& a, std::int64_t row, const Tensor& b, std::int64_t column) {
  float sum = 0.0F;
  double block = 0.0;
  for (std::int64_t k = 0; k < a.shape[1]; ++k) {
    const double product = formats::element(a, row, k) * formats::element(b, column, k);
    if (accumulation == Accumulation::float32) {
      sum = static_cast<float>(static_cast<double>(sum) + product);
      continue;
    }
    block += product;
    if (k % 16 == 15 || k + 1 == a.shape[1]) {
      const double exact = static_cast<double>(sum) + block;
      sum = static_cast<float>(exact);
      if (std::fabs(static_cast<double>(sum)) > std::fabs(exact)) {
        sum = std::nextafter(sum, 0.0F);
      }
      block = 0.0;
    }
  }
  return sum;
}

TEST(PlainLowPrecision, SumsInFloat32AndRoundsOnce) {
  for (const Accumulation accumulation : {Accumulation::float32, Accumulation::float32_truncated}) {
    for (const Format out : {Format::fp16, Format::bf16, Format::fp32}) {
      const DualGemmProblem problem{.m = 9, .n = 35, .k = 312, .a = Format::bf16, .b = Format::fp16, .out = out};
      const Operands x(problem);
      const Outputs plain =
          plain_low_precision(problem, x.a.view(), x.b1.view(), x.b2.view(), whole(problem), accumulation);
      for (std::int64_t row = 0; row < problem.m; ++row) {
        for (std::int64_t column = 0; column < problem.n; ++column) {
          const auto at = static_cast<std::size_t>(row * problem.n + column);
          const float gate = float32_sum(accumulation, x.a.view(), row, x.b1.view(), column);
          const float up = float32_sum(accumulation, x.a.view(), row, x.b2.view(), column);
          ASSERT_EQ(plain.gate[at], gate);
          ASSERT_EQ(plain.up[at], up);
          ASSERT_EQ(plain.value[at], round_to(out, activate(gate, up, problem.activation))) << name(out);
        }
      }
    }
  }
}

TEST(PlainLowPrecision, GlobalScalesMultiplyTheSums) {
  const DualGemmProblem problem{.m = 1, .n = 1, .k = 32, .a = Format::nvfp4, .b = Format::nvfp4, .out = Format::fp32};
  const Operands x(problem);
  for (const Accumulation accumulation : {Accumulation::float32, Accumulation::float32_truncated}) {
    const float sum = float32_sum(accumulation, x.a.view(), 0, x.b1.view(), 0);
    const Outputs plain =
        plain_low_precision(problem, x.a.view(), x.b1.view(), x.b2.view(), whole(problem), accumulation);
    EXPECT_EQ(plain.gate[0], sum * 0.75F * 0.75F);
  }
}

}  // namespace
}  // namespace thresher::reference
