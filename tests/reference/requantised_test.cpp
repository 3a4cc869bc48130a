// QuantizedOutput outputs: the definition by hand, and what the judge makes of mistakes.
#include "reference/quantized_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/quantize_row.hpp"
#include "formats/scales.hpp"
#include "reference/tolerance.hpp"
#include "support/dual_gemm_case.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

constexpr std::array quantized_formats{Format::nvfp4, Format::fp8_tensor, Format::fp8_row, Format::fp8_block};
constexpr std::int64_t rows_of_case = 5;
constexpr std::int64_t columns_of_case = 304;  // two blocks of 128, and one of 48

/// Outputs whose definition is known, and what quantize_row makes of them in float32.
class QuantizedCase {
 public:
  explicit QuantizedCase(Format format, const test::Layout& layout = {})
      : of_{.m = rows_of_case, .n = columns_of_case, .out = format},
        c_(test::Matrix::output(format, 1, of_.m, of_.n, layout)) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal(0.0, 8.0);
    for (std::int64_t i = 0; i < of_.m * of_.n; ++i) {
      values_.push_back(normal(random));
    }
  }

  [[nodiscard]] double& value(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>(row * of_.n + column)];
  }
  void quantize_output() {
    for (std::int64_t row = 0; row < of_.m; ++row) {
      quantize_row(row, of_.n);
    }
  }
  /// As if the row had no more columns than these: amax of a part.
  void quantize_row(std::int64_t row, std::int64_t columns) {
    std::vector<float> values;
    for (std::int64_t column = 0; column < columns; ++column) {
      values.push_back(static_cast<float>(value(row, column)));
    }
    formats::quantize_row(c_.view(), row, values);
  }
  /// The code of [row, column], of FP8.
  [[nodiscard]] std::uint8_t& code(std::int64_t row, std::int64_t column) {
    const Tensor view = c_.view();
    return static_cast<std::uint8_t*>(view.data)[row * view.strides[0] + column];
  }
  [[nodiscard]] float& scale(std::int64_t row, std::int64_t column) {
    const Tensor view = c_.view();
    return static_cast<float*>(const_cast<void*>(view.scales.data))[formats::scale_index(view, row, column)];
  }
  [[nodiscard]] Tensor view() { return c_.view(); }

  [[nodiscard]] Verdict verdict() { return verdict(whole(of_.m, of_.n)); }
  [[nodiscard]] Verdict verdict(const Region& region) {
    Outputs reference;
    for (const std::int64_t row : region.rows) {
      for (const std::int64_t column : region.columns) {
        reference.value.push_back(value(row, column));
      }
    }
    reference.gate = reference.up = reference.value;
    Outputs plain = reference;  // float32 sums lose something
    for (double& each : plain.gate) {
      each = static_cast<double>(static_cast<float>(each));
    }
    plain.value = plain.up = plain.gate;
    return judge(of_, Rule::general, region, reference, plain, c_.view());
  }

 private:
  OutputMatrix of_;
  test::Matrix c_;
  std::vector<double> values_;
};

TEST(QuantizedOutput, TheDefinitionIsRight) {
  for (const Format format : quantized_formats) {
    for (const ScaleLayout scales : all_scale_layouts) {
      for (const bool powers_of_two : {false, true}) {
        SCOPED_TRACE(std::string(name(format)) + " " + std::string(name(scales)));
        QuantizedCase of(format, {.out_scales = scales, .out_powers_of_two = powers_of_two});
        of.quantize_output();
        const Verdict verdict = of.verdict();
        EXPECT_TRUE(verdict.passed) << verdict.explain();
        EXPECT_GT(verdict.worst.ratio, 0.0);
      }
    }
  }
}

TEST(QuantizedOutput, ScalesAreOfTheLargestMagnitude) {
  EXPECT_EQ(formats::quantized_fp8_scale(448.0F, false), 1.0F);
  EXPECT_EQ(formats::quantized_fp8_scale(896.0F, true), 2.0F);
  EXPECT_EQ(formats::quantized_fp8_scale(897.0F, true), 4.0F);
  EXPECT_EQ(formats::quantized_fp8_scale(0.0F, true), 1.0F);
  EXPECT_EQ(formats::quantized_fp8_scale(1e-40F, false), 0x1p-126F);
  EXPECT_EQ(formats::quantized_nvfp4_scale(6.0F, 1.0F), 0x38);
  EXPECT_EQ(formats::quantized_nvfp4_scale(1e30F, 1.0F), 0x7E);
  EXPECT_EQ(formats::quantized_nvfp4_scale(0.0F, 1.0F), 0);
}

TEST(QuantizedOutput, ACodeTwoStepsAwayIsWrong) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    QuantizedCase of(format);
    of.value(2, 200) = 20.0;
    of.quantize_output();
    std::uint8_t& code = of.code(2, 200);
    code = static_cast<std::uint8_t>(code - 2);
    const Verdict verdict = of.verdict();
    EXPECT_FALSE(verdict.passed) << name(format);
    EXPECT_EQ(verdict.wrong, 1);
    EXPECT_EQ(verdict.worst.row, 2);
    EXPECT_EQ(verdict.worst.column, 200);
    EXPECT_EQ(verdict.wrong_scales, 0);
  }
}

TEST(QuantizedOutput, AmaxOfHalfTheBlockIsWrong) {
  QuantizedCase of(Format::fp8_block);
  of.value(1, 100) = 300.0;
  of.quantize_output();
  EXPECT_TRUE(of.verdict().passed);
  of.quantize_row(1, 64);
  of.code(1, 100) = 0x7E;
  const Verdict verdict = of.verdict();
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.wrong_scales, 1);
  EXPECT_EQ(verdict.first_wrong_scale.row, 1);
  EXPECT_EQ(verdict.first_wrong_scale.column, 0);
  EXPECT_NE(verdict.explain().find("1 scales are wrong"), std::string::npos) << verdict.explain();
}

TEST(QuantizedOutput, AScaleThatNoAmaxGivesIsWrongWithAllThatItMultiplies) {
  QuantizedCase of(Format::fp8_block);
  of.quantize_output();
  of.scale(4, 256) *= 1.001F;
  const Verdict verdict = of.verdict();
  EXPECT_EQ(of.verdict().wrong_scales, 1);
  EXPECT_EQ(verdict.wrong, 48);
}

TEST(QuantizedOutput, AScaleThatIsNoPowerOfTwoIsWrongWhereItIsToBeOne) {
  for (const Format format : {Format::fp8_row, Format::fp8_block}) {
    QuantizedCase of(format, {.out_powers_of_two = true});
    of.quantize_output();
    int exponent = 0;
    EXPECT_EQ(std::frexp(of.scale(3, 7), &exponent), 0.5F);
    EXPECT_TRUE(of.verdict().passed);
    of.scale(3, 7) *= 0.75F;
    EXPECT_FALSE(of.verdict().passed);
  }
}

TEST(QuantizedOutput, ARowOfZerosHasTheScaleOne) {
  QuantizedCase of(Format::fp8_row);
  for (std::int64_t column = 0; column < columns_of_case; ++column) {
    of.value(3, column) = 0.0;
  }
  of.quantize_output();
  EXPECT_EQ(of.scale(3, 7), 1.0F);
  EXPECT_TRUE(of.verdict().passed);
  of.scale(3, 7) = 0.0F;
  EXPECT_EQ(of.verdict().wrong_scales, 1);
}

TEST(QuantizedOutput, TinyValuesHaveTheLeastScale) {
  QuantizedCase of(Format::fp8_row);
  for (std::int64_t column = 0; column < columns_of_case; ++column) {
    of.value(3, column) = 0x1p-130;
  }
  of.quantize_output();
  EXPECT_EQ(of.scale(3, 7), 0x1p-126F);
  EXPECT_TRUE(of.verdict().passed);
}

TEST(QuantizedOutput, SpecialValuesAreSeenInCodesAndScales) {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Format format : quantized_formats) {
    for (const double special : {not_a_number, infinity, -infinity}) {
      SCOPED_TRACE(std::string(name(format)) + " " + std::to_string(special));
      QuantizedCase of(format);
      of.value(3, 7) = special;
      of.quantize_output();
      const Verdict verdict = of.verdict();
      EXPECT_TRUE(verdict.passed) << verdict.explain();
    }
  }
  QuantizedCase of(Format::fp8_row);
  of.value(3, 7) = infinity;
  of.quantize_output();
  EXPECT_TRUE(std::isinf(of.scale(3, 7)));
  of.scale(3, 7) = 1.0F;
  EXPECT_FALSE(of.verdict().passed);
  QuantizedCase lost(Format::fp8_block);
  lost.value(3, 7) = std::numeric_limits<double>::quiet_NaN();
  lost.quantize_output();
  lost.code(3, 7) = 0;
  EXPECT_FALSE(lost.verdict().passed);
}

TEST(QuantizedOutput, ScalesAreJudgedWholeOrNotAtAll) {
  QuantizedCase of(Format::fp8_block);
  of.quantize_output();
  EXPECT_THROW((void)of.verdict({{0, 3}, {0, 1, 130}}), Error);
  const Region region = with_whole_scales({{0, 3}, {0, 1, 303}}, Format::fp8_block, columns_of_case);
  EXPECT_EQ(region.columns.size(), 128U + 48U);
  EXPECT_EQ(region.columns.back(), 303);
  EXPECT_TRUE(of.verdict(region).passed);
  EXPECT_EQ(with_whole_scales({{0}, {5, 9}}, Format::fp8_tensor, 304).columns, (std::vector<std::int64_t>{5, 9}));
  EXPECT_EQ(with_whole_scales({{0}, {5}}, Format::fp8_row, 304).columns.size(), 304U);
  EXPECT_EQ(with_whole_scales({{0}, {5, 9}}, Format::nvfp4, 304).columns.size(), 16U);
}

}  // namespace
}  // namespace thresher::reference
