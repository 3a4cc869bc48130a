// The tensor core's arithmetic against sums of rational numbers, and where it is not that, against what its rules say
// by hand.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "machine/emulator/engine/random.hpp"
#include "machine/emulator/engine/tensor_arithmetic.hpp"

namespace thresher::emulator {
namespace {

constexpr std::array<double, 16> e2m1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};

double ue4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int fraction = code & 7;
  return exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
}

struct Operand {
  std::array<std::uint8_t, nvfp4_k / 2> codes{};
  std::array<std::uint8_t, nvfp4_scales> scales{};
  [[nodiscard]] double at(std::uint32_t i) const {
    return e2m1[codes[i / 2] >> (i % 2 * 4) & 15] * ue4m3(scales[i / 16]);
  }
  [[nodiscard]] Nvfp4Row row() const { return nvfp4_row(codes.data(), scales.data()); }
};

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float value(std::uint32_t word) { return std::bit_cast<float>(word); }

/// Towards zero.
float cut_to_float(double exact) {
  const auto nearest = static_cast<float>(exact);
  return std::abs(static_cast<double>(nearest)) > std::abs(exact) ? std::nextafter(nearest, 0.0F) : nearest;
}

std::uint32_t dot(const Operand& a, const Operand& b, float c) { return nvfp4_dot(a.row(), b.row(), bits(c)); }

// Scales within a few powers of two: nothing lies below the unit, and the sum is exact until it is rounded. A double
// holds it: products are multiples of 2^-8 of a pair of scales.
TEST(TensorArithmetic, IsExactAndThenCutWhereTermsAreAlike) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    Operand a;
    Operand b;
    for (std::uint32_t j = 0; j < nvfp4_k / 2; ++j) {
      a.codes[j] = static_cast<std::uint8_t>(random.below(256));
      b.codes[j] = static_cast<std::uint8_t>(random.below(256));
    }
    for (std::uint32_t j = 0; j < nvfp4_scales; ++j) {
      a.scales[j] = static_cast<std::uint8_t>(0x30 + random.below(24));
      b.scales[j] = static_cast<std::uint8_t>(0x30 + random.below(24));
    }
    const float c = (static_cast<float>(random.below(2000001)) - 1000000.0F) / 1024.0F;
    double exact = c;
    for (std::uint32_t j = 0; j < nvfp4_k; ++j) {
      exact += a.at(j) * b.at(j);
    }
    ASSERT_EQ(value(dot(a, b, c)), cut_to_float(exact)) << i;
  }
}

Operand constant(std::uint8_t code, std::uint8_t scale) {
  Operand operand;
  operand.codes.fill(code);
  operand.scales.fill(scale);
  return operand;
}

TEST(TensorArithmetic, WithoutProductsTheSumIsUntouched) {
  EXPECT_EQ(dot(constant(0x00, 0x38), constant(0x77, 0x38), -0.0F), bits(-0.0F));
  EXPECT_EQ(dot(constant(0x77, 0x00), constant(0x77, 0x38), 1.25F), bits(1.25F));
}

TEST(TensorArithmetic, ANanScaleOrSumMakesTheOneNan) {
  EXPECT_EQ(dot(constant(0x22, 0x7F), constant(0x22, 0x38), 0), 0x7FFFFFFFU);
  EXPECT_EQ(dot(constant(0x22, 0x38), constant(0x22, 0x38), std::nanf("")), 0x7FFFFFFFU);
  EXPECT_EQ(dot(constant(0x22, 0x38), constant(0x22, 0x38), -INFINITY), bits(-INFINITY));
}

TEST(TensorArithmetic, TheSignOfAScaleIsIgnored) {
  EXPECT_EQ(dot(constant(0x22, 0xB8), constant(0x22, 0x38), 0), bits(64));
}

/// One product of 2^-16·2^-4 (least subnormal scales' fractions apart) beside a greater sum.
Operand single(std::uint32_t index, std::uint8_t code, std::uint8_t scale) {
  Operand operand;
  operand.codes[index / 2] = static_cast<std::uint8_t>(code << (index % 2 * 4));
  operand.scales.fill(scale);
  return operand;
}

// C leads: what 16 products sum to is cut to 2^(exponent of C - 35). Least scales give 2^-18 · 1/4 = 2^-20.
TEST(TensorArithmetic, WhatIsBelowTheWindowOfALeadingSumIsLost) {
  const Operand least = single(5, 1, 0x01);
  const float small = value(dot(least, least, 0));
  EXPECT_EQ(small, std::ldexp(1.0F, -20));
  // -2^16 leaves room for 2^-19 and no less: 2^-20 is lost before it could lower the magnitude.
  EXPECT_EQ(value(dot(least, least, -65536.0F)), -65536.0F);
  // -2^15 keeps it; the sum is then cut towards zero to the next float32 below.
  EXPECT_EQ(value(dot(least, least, -32768.0F)), std::nextafter(-32768.0F, 0.0F));
}

TEST(TensorArithmetic, SumsAreCutTowardsZeroNotRounded) {
  const Operand one = single(0, 2, 0x38);
  // 2^24 + 1 lies between floats; towards zero it is 2^24. -2^24 - 1 likewise.
  EXPECT_EQ(value(dot(one, one, 16777216.0F)), 16777216.0F);
  EXPECT_EQ(value(dot(one, single(0, 10, 0x38), -16777216.0F)), -16777216.0F);
  EXPECT_EQ(value(dot(one, single(0, 10, 0x38), 16777216.0F)), 16777215.0F);
}

// One product after the other, each sum rounded to the nearest float32.
TEST(TensorArithmetic, Float32WhereItIsAskedFor) {
  EXPECT_EQ(tensor_arithmetic(TensorSums::hardware).scaled_dot, &nvfp4_dot);
  const TensorArithmetic in_float32 = tensor_arithmetic(TensorSums::float32);
  Random random(4);
  std::uint32_t others = 0;
  for (int i = 0; i < 1000; ++i) {
    Operand a;
    Operand b;
    for (Operand* operand : {&a, &b}) {
      for (std::uint8_t& code : operand->codes) {
        code = static_cast<std::uint8_t>(random.below(256));
      }
      for (std::uint8_t& scale : operand->scales) {
        scale = static_cast<std::uint8_t>(random.below(0x7F));
      }
    }
    float sum = 0.1F;
    for (std::uint32_t j = 0; j < nvfp4_k; ++j) {
      sum += static_cast<float>(a.at(j) * b.at(j));
    }
    ASSERT_EQ(value(in_float32.scaled_dot(a.row(), b.row(), bits(0.1F))), sum) << i;
    others += value(dot(a, b, 0.1F)) != sum ? 1 : 0;
  }
  EXPECT_GT(others, 100U);
  EXPECT_TRUE(std::isnan(value(in_float32.scaled_dot(constant(0x22, 0x7F).row(), constant(0x22, 0x38).row(), 0))));
}

// --- the kinds without scales ----------------------------------------------------------------------------------------

template <std::size_t count>
std::uint32_t plain(const TensorFormat& format, std::array<std::uint32_t, count> a, std::array<std::uint32_t, count> b,
                    float c) {
  std::array<TensorElement, count> of_a{};
  std::array<TensorElement, count> of_b{};
  for (std::size_t i = 0; i < count; ++i) {
    of_a[i] = format.decode(a[i]);
    of_b[i] = format.decode(b[i]);
  }
  return tensor_dot(of_a.data(), of_b.data(), count, format.fraction_bits, bits(c));
}

constexpr std::uint32_t half_one = 0x3C00;
constexpr std::uint32_t half_infinity = 0x7C00;

TEST(TensorArithmetic, HalvesAreSummedIn25BitsBelowTheGreatest) {
  EXPECT_EQ(value(plain<2>(tensor_fp16(), {half_one, 0x4000}, {half_one, 0x4000}, 0.5F)), 5.5F);
  // 2^-13 · 2^-13 lies 26 bits below 1 and is lost, 2^-12 · 2^-13 lies 25 below and is not.
  constexpr std::uint32_t two_to_minus_13 = 0x0800;
  constexpr std::uint32_t two_to_minus_12 = 0x0C00;
  EXPECT_EQ(value(plain<2>(tensor_fp16(), {half_one, two_to_minus_13}, {half_one | 0x8000, two_to_minus_13}, 0)),
            -1.0F);
  EXPECT_EQ(value(plain<2>(tensor_fp16(), {half_one, two_to_minus_12}, {half_one | 0x8000, two_to_minus_13}, 0)),
            -(1.0F - std::ldexp(1.0F, -24)));
}

TEST(TensorArithmetic, InfinitiesAndNan) {
  EXPECT_EQ(plain<2>(tensor_fp16(), {half_infinity, half_one}, {half_one, half_one}, 0), bits(INFINITY));
  EXPECT_EQ(plain<2>(tensor_fp16(), {half_infinity, half_infinity}, {half_one, half_one | 0x8000}, 0), 0x7FFFFFFFU);
  EXPECT_EQ(plain<1>(tensor_fp16(), {half_infinity}, {0}, 0), 0x7FFFFFFFU);
  EXPECT_EQ(plain<1>(tensor_e4m3(), {0x7F}, {0x38}, 0), 0x7FFFFFFFU);
  EXPECT_EQ(plain<1>(tensor_bf16(), {0x7FC0}, {0x3F80}, 0), 0x7FFFFFFFU);
}

TEST(TensorArithmetic, SubnormalsOfEachFormatCount) {
  EXPECT_EQ(value(plain<1>(tensor_fp16(), {1}, {half_one}, 0)), std::ldexp(1.0F, -24));
  EXPECT_EQ(value(plain<1>(tensor_e4m3(), {1}, {0x38}, 0)), std::ldexp(1.0F, -9));
  EXPECT_EQ(value(plain<1>(tensor_bf16(), {0x0001}, {0x3F80}, 0)), std::ldexp(1.0F, -133));
}

}  // namespace
}  // namespace thresher::emulator
