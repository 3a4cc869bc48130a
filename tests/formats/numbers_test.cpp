// Every bit pattern against an independent definition: sign · significand · 2^exponent by std::ldexp, and for narrowing
// every value, every midpoint between neighbours and the float32 on either side of that midpoint.
#include "formats/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "thresher/format.hpp"

namespace thresher::formats {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

/// What a format says of itself in its specification.
struct Definition {
  std::string name;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t largest_finite;  ///< code without sign
  std::uint32_t above_largest;   ///< the code that overflow gives
  std::function<float(std::uint32_t)> widen;
  std::function<std::uint32_t(float)> narrow;

  [[nodiscard]] std::uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }

  [[nodiscard]] double value(std::uint32_t magnitude) const {
    const int fraction = static_cast<int>(magnitude & ((1U << mantissa_bits) - 1U));
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    if (exponent == 0) {
      return std::ldexp(fraction, 1 - bias - mantissa_bits);
    }
    return std::ldexp((1 << mantissa_bits) + fraction, exponent - bias - mantissa_bits);
  }
};

void PrintTo(const Definition& definition, std::ostream* out) { *out << definition.name; }

Definition fp16() {
  return {"fp16",
          5,
          10,
          15,
          0x7BFF,
          0x7C00,
          [](std::uint32_t c) { return fp16_to_float(static_cast<std::uint16_t>(c)); },
          [](float x) { return std::uint32_t{float_to_fp16(x)}; }};
}
Definition bf16() {
  return {"bf16",
          8,
          7,
          127,
          0x7F7F,
          0x7F80,
          [](std::uint32_t c) { return bf16_to_float(static_cast<std::uint16_t>(c)); },
          [](float x) { return std::uint32_t{float_to_bf16(x)}; }};
}
Definition e4m3() {
  return {"e4m3",
          4,
          3,
          7,
          0x7E,
          0x7E,
          [](std::uint32_t c) { return e4m3_to_float(static_cast<std::uint8_t>(c)); },
          [](float x) { return std::uint32_t{float_to_e4m3(x)}; }};
}
Definition e2m1() {
  return {"e2m1",
          2,
          1,
          1,
          0x7,
          0x7,
          [](std::uint32_t c) { return e2m1_to_float(static_cast<std::uint8_t>(c)); },
          [](float x) { return std::uint32_t{float_to_e2m1(x)}; }};
}

class Numbers : public testing::TestWithParam<Definition> {
 protected:
  /// Both signs: `value` must become `code`.
  static void expect_narrow(float value, std::uint32_t code) {
    const Definition& format = GetParam();
    ASSERT_EQ(format.narrow(value), code) << format.name << " of " << std::hexfloat << value;
    ASSERT_EQ(format.narrow(-value), code | format.sign_bit()) << format.name << " of " << std::hexfloat << -value;
  }
};

TEST_P(Numbers, EveryFinitePatternWidensToItsValue) {
  const Definition& format = GetParam();
  for (std::uint32_t code = 0; code <= format.largest_finite; ++code) {
    const float positive = format.widen(code);
    const float negative = format.widen(code | format.sign_bit());
    ASSERT_EQ(static_cast<double>(positive), format.value(code)) << format.name << " " << code;
    ASSERT_EQ(static_cast<double>(negative), -format.value(code)) << format.name << " " << code;
    ASSERT_FALSE(std::signbit(positive)) << format.name << " " << code;
    ASSERT_TRUE(std::signbit(negative)) << format.name << " " << code;
  }
}

TEST_P(Numbers, EveryFiniteValueNarrowsToItself) {
  for (std::uint32_t code = 0; code <= GetParam().largest_finite; ++code) {
    expect_narrow(static_cast<float>(GetParam().value(code)), code);
  }
}

TEST_P(Numbers, EveryMidpointGoesToEvenAndItsNeighboursToTheNearest) {
  const Definition& format = GetParam();
  for (std::uint32_t code = 0; code < format.largest_finite; ++code) {
    const auto midpoint = static_cast<float>((format.value(code) + format.value(code + 1)) / 2.0);
    ASSERT_EQ(static_cast<double>(midpoint) * 2.0, format.value(code) + format.value(code + 1));
    expect_narrow(midpoint, code % 2 == 0 ? code : code + 1);
    expect_narrow(std::nextafter(midpoint, 0.0F), code);
    expect_narrow(std::nextafter(midpoint, inf), code + 1);
  }
}

TEST_P(Numbers, OverflowBeginsHalfAStepAboveTheLargest) {
  const Definition& format = GetParam();
  const double largest = format.value(format.largest_finite);
  const double step = largest - format.value(format.largest_finite - 1);
  const auto limit = static_cast<float>(largest + step / 2.0);
  expect_narrow(std::nextafter(limit, 0.0F), format.largest_finite);
  expect_narrow(limit, format.above_largest);
  expect_narrow(std::nextafter(limit, inf), format.above_largest);
  expect_narrow(std::numeric_limits<float>::max(), format.above_largest);
  expect_narrow(inf, format.above_largest);
}

TEST_P(Numbers, TheSmallestFloatsBecomeSignedZero) {
  if (GetParam().name != "bf16") {  // bf16 has float32's range: its smallest subnormal is tested as a midpoint above
    expect_narrow(std::numeric_limits<float>::min(), 0);
  }
  expect_narrow(std::numeric_limits<float>::denorm_min(), 0);
}

INSTANTIATE_TEST_SUITE_P(AllFormats, Numbers, testing::Values(fp16(), bf16(), e4m3(), e2m1()),
                         [](const auto& format) { return format.param.name; });

TEST(NumbersSpecial, EveryNonFinite16BitPatternSurvivesARoundTrip) {
  for (std::uint32_t fraction = 0; fraction < 0x400; ++fraction) {
    for (const std::uint32_t sign : {0x0000U, 0x8000U}) {
      const float value = fp16_to_float(static_cast<std::uint16_t>(sign | 0x7C00U | fraction));
      ASSERT_EQ(std::isnan(value), fraction != 0);
      ASSERT_EQ(std::isinf(value), fraction == 0);
      ASSERT_EQ(std::signbit(value), sign != 0);
      const std::uint32_t quiet = fraction == 0 ? 0U : 0x200U;
      ASSERT_EQ(float_to_fp16(value), sign | 0x7C00U | fraction | quiet);
    }
  }
  for (std::uint32_t fraction = 0; fraction < 0x80; ++fraction) {
    for (const std::uint32_t sign : {0x0000U, 0x8000U}) {
      const float value = bf16_to_float(static_cast<std::uint16_t>(sign | 0x7F80U | fraction));
      ASSERT_EQ(std::isnan(value), fraction != 0);
      ASSERT_EQ(std::isinf(value), fraction == 0);
      ASSERT_EQ(std::signbit(value), sign != 0);
      const std::uint32_t quiet = fraction == 0 ? 0U : 0x40U;
      ASSERT_EQ(float_to_bf16(value), sign | 0x7F80U | fraction | quiet);
    }
  }
}

TEST(NumbersSpecial, ANaNWhosePayloadLiesInTheDroppedBitsStaysANaN) {
  for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0x7FC00000U}) {
    const auto value = std::bit_cast<float>(bits);
    const bool negative = (bits >> 31) != 0;
    EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(value)))) << bits;
    EXPECT_EQ(float_to_fp16(value) >> 15, negative ? 1 : 0) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value)))) << bits;
    EXPECT_EQ(float_to_bf16(value) >> 15, negative ? 1 : 0) << bits;
    EXPECT_EQ(float_to_e4m3(value), negative ? 0xFF : 0x7F) << bits;
  }
}

TEST(NumbersSpecial, E4m3HasTwoNaNCodesAndNoInf) {
  int nans = 0;
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3_to_float(static_cast<std::uint8_t>(code));
    ASSERT_FALSE(std::isinf(value)) << code;
    ASSERT_EQ(std::isnan(value), code == 0x7F || code == 0xFF) << code;
    ASSERT_EQ(is_e4m3_nan(static_cast<std::uint8_t>(code)), std::isnan(value)) << code;
    ASSERT_EQ(std::signbit(value), code >= 0x80) << code;
    nans += std::isnan(value) ? 1 : 0;
  }
  EXPECT_EQ(nans, 2);
}

TEST(NumbersSpecial, E2m1IgnoresTheUpperHalfOfTheByte) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(e2m1_to_float(static_cast<std::uint8_t>(code)), e2m1_to_float(static_cast<std::uint8_t>(code & 0xF)));
  }
}

TEST(NumbersSpecial, TablesHoldWhatTheFunctionsGive) {
  for (std::size_t code = 0; code < 256; ++code) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(e4m3_values[code]),
              std::bit_cast<std::uint32_t>(e4m3_to_float(static_cast<std::uint8_t>(code))));
  }
  for (std::size_t code = 0; code < 16; ++code) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(e2m1_values[code]),
              std::bit_cast<std::uint32_t>(e2m1_to_float(static_cast<std::uint8_t>(code))));
  }
}

TEST(Numbers, TheProductFormatOfNvfp4HoldsEveryValueTimesScale) {
  ASSERT_EQ(format_traits(Format::nvfp4).product_format, Format::fp16);
  for (int code = 0; code < 16; ++code) {
    for (int scale = 0; scale < 256; ++scale) {
      const float product =
          e2m1_to_float(static_cast<std::uint8_t>(code)) * e4m3_to_float(static_cast<std::uint8_t>(scale));
      if (!std::isnan(product)) {
        EXPECT_EQ(fp16_to_float(float_to_fp16(product)), product) << code << " " << scale;
      }
    }
  }
}

}  // namespace
}  // namespace thresher::formats
