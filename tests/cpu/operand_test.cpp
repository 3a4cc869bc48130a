#include "cpu/operand.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::cpu {
namespace {

using test::DualGemmCase;
using test::Layout;
using test::Matrix;

/// A slice that reaches beyond the operand's rows and is padded along K.
constexpr Slice ragged{.first_row = 3, .rows = 8, .first_k = 16, .depth = 1056, .padded_depth = 1088};

double expected_at(const Tensor& operand, std::int64_t row, std::int64_t k) {
  const bool inside = ragged.first_row + row < operand.shape[0] && k < ragged.depth;
  return inside ? formats::element(operand, ragged.first_row + row, ragged.first_k + k) : 0.0;
}

TEST(CpuOperand, SlicesOfEveryFormatAreExactAndPaddedWithZeros) {
  for (const Format format : {Format::fp16, Format::bf16, Format::nvfp4}) {
    for (const ScaleLayout scales : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      DualGemmCase any = DualGemmCase::random({.m = 9, .n = 1, .k = 1104, .a = format, .b = format},
                                              Layout{.row_gap = 4, .scales = scales});
      const Tensor operand = any.a.view();
      std::vector<std::uint16_t> high(ragged.rows * ragged.padded_depth, 0xFFFF);
      std::vector<std::uint16_t> low = high;
      std::vector<float> float32(high.size(), -1.0F);
      (void)to_bf16(operand, ragged, high.data(), low.data());
      to_float32(operand, ragged, float32.data());
      for (std::int64_t row = 0; row < ragged.rows; ++row) {
        for (std::int64_t k = 0; k < ragged.padded_depth; ++k) {
          const auto i = static_cast<std::size_t>(row * ragged.padded_depth + k);
          const float low_value = format == Format::fp16 ? formats::bf16_to_float(low[i]) : 0.0F;
          ASSERT_EQ(formats::bf16_to_float(high[i]) + low_value, expected_at(operand, row, k)) << row << ", " << k;
          ASSERT_EQ(float32[i], expected_at(operand, row, k)) << row << ", " << k;
        }
      }
    }
  }
}

TEST(CpuOperand, TheRangeOfASliceIsThatOfItsElements) {
  static constexpr Slice all{.first_row = 0, .rows = 2, .first_k = 0, .depth = 40, .padded_depth = 64};
  const auto range_of = [](float special, std::int64_t row, std::int64_t column) {
    Matrix matrix = Matrix::of_values(Format::bf16, 2, 40, 0, [](std::int64_t, std::int64_t) { return 1.0F; });
    matrix.set_value(row, column, special);
    std::vector<std::uint16_t> out(2 * 64);
    return to_bf16(matrix.view(), all, out.data(), nullptr);
  };
  EXPECT_EQ(range_of(0.0F, 1, 5).smallest_exponent, 127);
  EXPECT_EQ(range_of(-0x1.8p-60F, 1, 39).smallest_exponent, 67);
  EXPECT_EQ(range_of(0x1p-126F, 0, 0).smallest_exponent, 1);
  EXPECT_EQ(range_of(0x1p-127F, 0, 33).smallest_exponent, 0);
  EXPECT_FALSE(range_of(std::numeric_limits<float>::quiet_NaN(), 0, 7).infinite);
  EXPECT_TRUE(range_of(-std::numeric_limits<float>::infinity(), 1, 38).infinite);
}

ExponentRange from_exponent(int exponent) { return {.smallest_exponent = exponent + 127, .infinite = false}; }

TEST(CpuOperand, ExactnessEndsWhereASumCouldBeSubnormal) {
  const ExponentRange none;
  EXPECT_TRUE(exact_in_bf16(Format::nvfp4, none, Format::nvfp4, none));
  EXPECT_TRUE(exact_in_bf16(Format::fp16, none, Format::nvfp4, none));
  EXPECT_TRUE(exact_in_bf16(Format::fp16, none, Format::fp16, none));
  // Last places are 7 binary places below the exponents: -56 - 7 - 56 - 7 = -126.
  EXPECT_TRUE(exact_in_bf16(Format::bf16, from_exponent(-56), Format::bf16, from_exponent(-56)));
  EXPECT_FALSE(exact_in_bf16(Format::bf16, from_exponent(-57), Format::bf16, from_exponent(-56)));
  EXPECT_FALSE(exact_in_bf16(Format::bf16, from_exponent(-56), Format::bf16, from_exponent(-57)));
  // 2^-10 is NVFP4's smallest value, 2^-24 that of fp16.
  EXPECT_TRUE(exact_in_bf16(Format::bf16, from_exponent(-109), Format::nvfp4, none));
  EXPECT_FALSE(exact_in_bf16(Format::bf16, from_exponent(-110), Format::nvfp4, none));
  EXPECT_TRUE(exact_in_bf16(Format::fp16, none, Format::bf16, from_exponent(-95)));
  EXPECT_FALSE(exact_in_bf16(Format::fp16, none, Format::bf16, from_exponent(-96)));
  // A subnormal operand is taken for zero, whatever it is multiplied by.
  EXPECT_FALSE(exact_in_bf16(Format::bf16, from_exponent(-127), Format::bf16, from_exponent(100)));
}

TEST(CpuOperand, AnInfinityMayNotMeetALowPlane) {
  const ExponentRange none;
  const ExponentRange infinite{.smallest_exponent = 255, .infinite = true};
  EXPECT_FALSE(exact_in_bf16(Format::fp16, none, Format::fp16, infinite));
  EXPECT_FALSE(exact_in_bf16(Format::fp16, infinite, Format::fp16, none));
  EXPECT_FALSE(exact_in_bf16(Format::bf16, infinite, Format::fp16, none));
  EXPECT_TRUE(exact_in_bf16(Format::fp16, infinite, Format::nvfp4, none));
  EXPECT_TRUE(exact_in_bf16(Format::bf16, infinite, Format::bf16, infinite));
}

/// may_be_inexact_in_bf16 must not promise what exact_in_bf16 can refuse.
TEST(CpuOperand, FormatsThatNeverNeedFloat32NeverAskForIt) {
  for (const Format a : {Format::fp16, Format::bf16, Format::nvfp4}) {
    for (const Format b : {Format::fp16, Format::bf16, Format::nvfp4}) {
      const auto worst = [](Format format) -> ExponentRange {
        if (format == Format::nvfp4) {
          return {};
        }
        return {.smallest_exponent = format == Format::bf16 ? 0 : 255, .infinite = true};
      };
      EXPECT_EQ(may_be_inexact_in_bf16(a, b), !exact_in_bf16(a, worst(a), b, worst(b))) << name(a) << " " << name(b);
    }
  }
}

}  // namespace
}  // namespace thresher::cpu
