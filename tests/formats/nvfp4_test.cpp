#include "formats/nvfp4.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

Nvfp4Matrix quantize(std::vector<float> values, std::int64_t rows, ScaleLayout layout = ScaleLayout::row_major) {
  const auto k = static_cast<std::int64_t>(values.size()) / rows;
  return quantize_nvfp4(Tensor::contiguous(values.data(), Format::fp32, {rows, k}), "w", layout);
}

std::string refusal(std::vector<float> values, std::int64_t rows) {
  try {
    (void)quantize(std::move(values), rows);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

/// The code whose value is nearest to x by exhaustive search, the even one on a tie, saturating.
template <typename Widen>
int nearest_code(double x, int largest_code, Widen widen) {
  int best = 0;
  for (int code = 1; code <= largest_code; ++code) {
    const double distance = std::fabs(std::fabs(x) - static_cast<double>(widen(static_cast<std::uint8_t>(code))));
    const double best_distance = std::fabs(std::fabs(x) - static_cast<double>(widen(static_cast<std::uint8_t>(best))));
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
      best = code;
    }
  }
  return best;
}

/// Holds `matrix` to the definition written out: each step in float32, each rounding by exhaustive search.
void expect_as_defined(const std::vector<float>& x, std::int64_t rows, Nvfp4Matrix matrix) {
  const std::int64_t k = matrix.k;
  float amax = 0.0F;
  for (const float value : x) {
    amax = std::max(amax, std::fabs(value));
  }
  const float g = amax / 2688.0F == 0.0F ? 1.0F : amax / 2688.0F;
  ASSERT_EQ(matrix.global_scale, g);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t block = 0; block < k / 16; ++block) {
      float block_amax = 0.0F;
      for (std::int64_t i = 0; i < 16; ++i) {
        block_amax = std::max(block_amax, std::fabs(x[static_cast<std::size_t>(row * k + block * 16 + i)]));
      }
      const auto s =
          static_cast<std::uint8_t>(nearest_code(static_cast<double>(block_amax / (6.0F * g)), 0x7E, e4m3_to_float));
      ASSERT_EQ(matrix.scales[scale_offset(row, block, k / 16, matrix.scale_layout)], s) << row << " " << block;
      for (std::int64_t i = 0; i < 16; ++i) {
        const auto index = static_cast<std::size_t>(row * k + block * 16 + i);
        const float step = e4m3_to_float(s) * g;
        int q = 0;
        if (s != 0) {
          q = nearest_code(static_cast<double>(x[index] / step), 7, e2m1_to_float) | (std::signbit(x[index]) ? 8 : 0);
        }
        const int stored = index % 2 == 0 ? matrix.values[index / 2] & 0xF : matrix.values[index / 2] >> 4;
        ASSERT_EQ(stored, q) << row << " " << block << " " << i << " of " << x[index];
      }
    }
  }
}

TEST(Nvfp4, QuantisesAsDefinedOverManyMagnitudes) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-14.0F, 4.0F);
  for (const float magnitude : {1.0F, 1e-30F, 3e34F, 1e-40F}) {
    std::vector<float> x(std::size_t{24} * 64);
    for (std::size_t i = 0; i < x.size(); i += 16) {
      const float block_magnitude = magnitude * std::exp2(exponent(random));
      for (std::size_t j = i; j < i + 16; ++j) {
        x[j] = normal(random) * block_magnitude;
      }
    }
    expect_as_defined(x, 24, quantize(x, 24));
    expect_as_defined(x, 24, quantize(x, 24, ScaleLayout::blocked));
  }
}

TEST(Nvfp4, TiesGoToTheEvenCode) {
  // Row 0 makes g = 1; row 1 has s = 1 and every midpoint between neighbours of e2m1.
  std::vector<float> x(32, 0.0F);
  x[0] = 2688.0F;
  const std::vector<float> midpoints{0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F, 6.0F};
  for (std::size_t i = 0; i < midpoints.size(); ++i) {
    x[16 + 2 * i] = midpoints[i];
    x[17 + 2 * i] = -midpoints[i];
  }
  const Nvfp4Matrix matrix = quantize(x, 2);
  const std::vector<std::uint8_t> expected{0x80, 0xA2, 0xA2, 0xC4, 0xC4, 0xE6, 0xE6, 0xF7};
  EXPECT_EQ(matrix.scales[1], 0x38);
  EXPECT_EQ(std::vector<std::uint8_t>(matrix.values.begin() + 8, matrix.values.end()), expected);
}

TEST(Nvfp4, AMatrixOfZerosHasGlobalScaleOne) {
  Nvfp4Matrix matrix = quantize(std::vector<float>(32, 0.0F), 1);
  EXPECT_EQ(matrix.global_scale, 1.0F);
  EXPECT_EQ(matrix.scales, std::vector<std::uint8_t>(2, 0));
  EXPECT_EQ(matrix.values, std::vector<std::uint8_t>(16, 0));
  // So small that amax/2688 is 0 in float32: everything vanishes, and nothing divides by zero.
  matrix = quantize(std::vector<float>(32, std::numeric_limits<float>::denorm_min()), 1);
  EXPECT_EQ(matrix.global_scale, 1.0F);
  EXPECT_EQ(matrix.values, std::vector<std::uint8_t>(16, 0));
}

TEST(Nvfp4, ABlockTooSmallForAScaleIsZero) {
  std::vector<float> x(32, 1e-6F);
  x[16] = 2688.0F;
  const Nvfp4Matrix matrix = quantize(x, 1);
  EXPECT_EQ(matrix.scales[0], 0);
  EXPECT_EQ(std::vector<std::uint8_t>(matrix.values.begin(), matrix.values.begin() + 8),
            std::vector<std::uint8_t>(8, 0));
}

TEST(Nvfp4, AZeroStaysZeroWhereTheStepUnderflows) {
  std::vector<float> x(32, 0.0F);
  x[0] = std::numeric_limits<float>::denorm_min();
  x[16] = 1e-40F;
  const Nvfp4Matrix matrix = quantize(x, 1);
  ASSERT_NE(matrix.scales[0], 0);
  ASSERT_EQ(e4m3_to_float(matrix.scales[0]) * matrix.global_scale, 0.0F);
  EXPECT_EQ(matrix.values[0], 0x07);
  EXPECT_EQ(matrix.values[1], 0x00);
}

TEST(Nvfp4, EveryCodeAndScaleSurvivesARoundTrip) {
  // Every normal scale code with every value; the ±6 in each block makes amax = 6·s and the largest code makes g = 1.
  std::vector<float> x;
  for (int scale = 8; scale < 0x7F; ++scale) {
    for (int code = 0; code < 16; ++code) {
      x.push_back(e2m1_to_float(static_cast<std::uint8_t>(code)) * e4m3_to_float(static_cast<std::uint8_t>(scale)));
    }
  }
  Nvfp4Matrix matrix = quantize(x, 1);
  EXPECT_EQ(matrix.global_scale, 1.0F);
  for (std::size_t i = 0; i < matrix.scales.size(); ++i) {
    EXPECT_EQ(matrix.scales[i], i + 8);
  }
  EXPECT_EQ(dequantize_to_float(matrix.view(), "w"), x);
}

TEST(Nvfp4, EverySourceFormatGivesTheSame) {
  std::vector<float> x;
  std::vector<std::uint16_t> half;
  std::vector<std::uint16_t> brain;
  std::vector<std::uint8_t> eighth;
  for (int i = 0; i < 64; ++i) {
    const float value = static_cast<float>(i % 15 - 7) * 0.25F;
    x.push_back(value);
    half.push_back(float_to_fp16(value));
    brain.push_back(float_to_bf16(value));
    eighth.push_back(float_to_e4m3(value));
  }
  const Nvfp4Matrix expected = quantize(x, 2);
  const auto expect_same = [&](void* data, Format format) {
    const Nvfp4Matrix matrix = quantize_nvfp4(Tensor::contiguous(data, format, {2, 32}), "w");
    EXPECT_EQ(matrix.values, expected.values) << name(format);
    EXPECT_EQ(matrix.scales, expected.scales) << name(format);
    EXPECT_EQ(matrix.global_scale, expected.global_scale) << name(format);
  };
  expect_same(half.data(), Format::fp16);
  expect_same(brain.data(), Format::bf16);
  expect_same(eighth.data(), Format::fp8_e4m3);
}

TEST(Nvfp4, RefusesNonFiniteElementsAndNamesThem) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(64, 1.0F);
    x[32 + 17] = bad;
    EXPECT_NE(refusal(x, 2).find("at [1, 17]"), std::string::npos) << refusal(x, 2);
  }
  EXPECT_NE(refusal(std::vector<float>(24, 1.0F), 1).find("w has K = 24"), std::string::npos);
  EXPECT_EQ(refusal(std::vector<float>(16, 1.0F), 1), "");
}

TEST(Nvfp4, DequantisesWithTheGlobalScaleAndKeepsNaNScales) {
  Nvfp4Matrix matrix = quantize(std::vector<float>(32, 21.0F), 1);
  EXPECT_EQ(dequantize_to_float(matrix.view(), "w"), std::vector<float>(32, 21.0F));
  matrix.global_scale = 2.0F * matrix.global_scale;
  EXPECT_EQ(dequantize_to_double(matrix.view(), "w").at(5), 448.0 * 6.0 * static_cast<double>(matrix.global_scale));
  matrix.scales[1] = 0xFF;
  const std::vector<float> values = dequantize_to_float(matrix.view(), "w");
  EXPECT_FALSE(std::isnan(values[15]));
  EXPECT_TRUE(std::isnan(values[16]));
}

TEST(Scales, BothLayoutsHoldTheSameScales) {
  for (const std::int64_t rows : {1, 31, 128, 129, 300}) {
    for (const std::int64_t k : {16, 64, 80, 256}) {
      std::vector<std::uint8_t> row_major(scale_bytes(rows, k, ScaleLayout::row_major));
      for (std::size_t i = 0; i < row_major.size(); ++i) {
        row_major[i] = static_cast<std::uint8_t>(1 + i % 251);
      }
      const auto blocked = convert_scales(row_major, rows, k, ScaleLayout::row_major, ScaleLayout::blocked);
      ASSERT_EQ(blocked.size(), scale_bytes(rows, k, ScaleLayout::blocked));
      std::size_t padding = 0;
      for (const std::uint8_t code : blocked) {
        padding += code == 0 ? 1 : 0;
      }
      EXPECT_EQ(padding, blocked.size() - row_major.size());
      EXPECT_EQ(convert_scales(blocked, rows, k, ScaleLayout::blocked, ScaleLayout::row_major), row_major);
      EXPECT_EQ(convert_scales(blocked, rows, k, ScaleLayout::blocked, ScaleLayout::blocked), blocked);
    }
  }
}

TEST(Scales, RowsThatHoldNothingAreNotWalkedOver) {
  const std::int64_t rows = std::int64_t{1} << 61;
  for (const ScaleLayout from : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    for (const ScaleLayout to : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      EXPECT_TRUE(convert_scales({}, rows, 0, from, to).empty());
    }
  }
  const Tensor nothing = Tensor::contiguous(nullptr, Format::fp32, {rows, 0});
  EXPECT_TRUE(dequantize_to_double(nothing, "x").empty());
  for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::blocked}) {
    const Nvfp4Matrix matrix = quantize_nvfp4(nothing, "x", layout);
    EXPECT_EQ(matrix.rows, rows);
    EXPECT_TRUE(matrix.values.empty());
    EXPECT_EQ(matrix.global_scale, 1.0F);
  }
}

TEST(Scales, PaddingThatIsNotZeroIsRefused) {
  std::vector<std::uint8_t> blocked(scale_bytes(33, 80, ScaleLayout::blocked), 0);
  EXPECT_NO_THROW((void)convert_scales(blocked, 33, 80, ScaleLayout::blocked, ScaleLayout::row_major));
  for (const auto& [row, column] : {std::pair{33, 0}, {127, 7}, {0, 5}}) {
    std::vector<std::uint8_t> bad = blocked;
    bad[scale_offset(row, column, 5, ScaleLayout::blocked)] = 0x38;
    EXPECT_THROW((void)convert_scales(bad, 33, 80, ScaleLayout::blocked, ScaleLayout::row_major), Error);
  }
  EXPECT_THROW((void)convert_scales(blocked, 33, 80, ScaleLayout::row_major, ScaleLayout::blocked), Error);
}

}  // namespace
}  // namespace thresher::formats
