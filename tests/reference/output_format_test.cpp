#include "reference/output_format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "formats/numbers.hpp"
#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

TEST(OutputFormat, RoundsAsTheConversionsDo) {
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(round_to(Format::fp16, value)));
      continue;
    }
    ASSERT_EQ(round_to(Format::fp16, value), formats::fp16_to_float(formats::float_to_fp16(value))) << value;
    ASSERT_EQ(round_to(Format::bf16, value), formats::bf16_to_float(formats::float_to_bf16(value))) << value;
    ASSERT_EQ(round_to(Format::fp32, value), value);
  }
  EXPECT_EQ(round_to(Format::fp32, 1.0 + 0x1p-24), 1.0);
  EXPECT_EQ(round_to(Format::fp32, 1.0 + 0x1.8p-23), 1.0 + 0x1p-22);
  EXPECT_EQ(round_to(Format::fp32, 1e39), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(round_to(Format::fp16, -0.0)));
}

TEST(OutputFormat, UlpIsTheDistanceToTheNextNumberUp) {
  for (std::uint16_t code = 0; code < 0x7BFF; ++code) {
    const float value = formats::fp16_to_float(code);
    const float next = formats::fp16_to_float(static_cast<std::uint16_t>(code + 1));
    ASSERT_EQ(ulp(Format::fp16, value), next - value) << code;
    ASSERT_EQ(ulp(Format::fp16, -value), next - value) << code;
  }
  for (const float value : {0.0F, 1e-44F, 1e-30F, 1.0F, 3e38F}) {
    ASSERT_EQ(ulp(Format::fp32, value), std::nextafter(value, std::numeric_limits<float>::infinity()) - value);
  }
  EXPECT_EQ(ulp(Format::bf16, 1.0), 0x1p-7);
  EXPECT_EQ(ulp(Format::fp16, 1e9), 32.0);
}

TEST(OutputFormat, OverflowBeginsHalfAnUlpAboveTheLargest) {
  EXPECT_EQ(overflow_threshold(Format::fp16), 65520.0);
  for (const Format format : {Format::fp16, Format::bf16, Format::fp32}) {
    const double threshold = overflow_threshold(format);
    EXPECT_TRUE(std::isinf(round_to(format, threshold)));
    EXPECT_TRUE(std::isfinite(round_to(format, std::nextafter(threshold, 0.0))));
  }
}

TEST(OutputFormat, WhatIsQuantizedIsFloat32Before) {
  for (const Format format : {Format::nvfp4, Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    EXPECT_EQ(ulp(format, 1.0), ulp(Format::fp32, 1.0));
    EXPECT_EQ(round_to(format, 1.0 / 3.0), round_to(Format::fp32, 1.0 / 3.0));
  }
}

TEST(OutputFormat, OthersAreRefused) {
  EXPECT_THROW((void)ulp(Format::uint8, 1.0), Error);
  EXPECT_THROW((void)round_to(Format::int32, 1.0), Error);
}

}  // namespace
}  // namespace thresher::reference
