// FP8: what its scales are of, where they lie, and quantising to it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "core/integers.hpp"
#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "formats/fp8.hpp"
#include "formats/numbers.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

struct Case {
  Format format;
  OperandRole role;
  ScaleLayout layout;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{{Format::fp8_tensor, OperandRole::weights, ScaleLayout::row_major},
                                     {Format::fp8_row, OperandRole::tokens, ScaleLayout::row_major},
                                     {Format::fp8_row, OperandRole::weights, ScaleLayout::row_major},
                                     {Format::fp8_block, OperandRole::tokens, ScaleLayout::row_major},
                                     {Format::fp8_block, OperandRole::tokens, ScaleLayout::column_major},
                                     {Format::fp8_block, OperandRole::weights, ScaleLayout::row_major}};
  return all;
}

/// Which scale a value has, written from the definition of the layouts.
std::size_t scale_of(const Case& of, std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t k) {
  if (of.format == Format::fp8_tensor) {
    return 0;
  }
  if (of.format == Format::fp8_row) {
    return static_cast<std::size_t>(row);
  }
  const std::int64_t columns = ceil_div(k, std::int64_t{128});
  if (of.role == OperandRole::weights) {
    return static_cast<std::size_t>(row / 128 * columns + column / 128);
  }
  return static_cast<std::size_t>(of.layout == ScaleLayout::column_major
                                      ? column / 128 * round_up(rows, std::int64_t{4}) + row
                                      : row * columns + column / 128);
}

constexpr std::int64_t rows = 259;
constexpr std::int64_t k = 208;

TEST(Fp8, ValuesAreCodeTimesTheirScale) {
  std::vector<float> values = random_floats(rows * k, 1);
  for (const Case& one : cases()) {
    Fp8Matrix matrix =
        quantize_fp8(Tensor::contiguous(values.data(), Format::fp32, {rows, k}), "w", one.format, one.role, one.layout);
    const Tensor view = matrix.view();
    check_matrix(view, "w", rows, k, one.format);
    EXPECT_EQ(scale_bytes(view), one.format == Format::fp8_tensor ? 0 : matrix.scales.size() * sizeof(float));
    std::vector<double> decoded(k);
    for (std::int64_t row = 0; row < rows; ++row) {
      decode_row(view, row, decoded);
      for (std::int64_t column = 0; column < k; ++column) {
        const double scale = matrix.scales.at(scale_of(one, row, column, rows, k));
        const double code = e4m3_values[matrix.values[static_cast<std::size_t>(row * k + column)]];
        const double of_tensor = one.format == Format::fp8_tensor ? global_scale(view) : 1.0;
        ASSERT_EQ(element(view, row, column) * of_tensor, code * scale) << name(one.format) << row << "," << column;
        ASSERT_EQ(decoded[static_cast<std::size_t>(column)] * of_tensor, code * scale);
      }
    }
  }
}

TEST(Fp8, TheGreatestOfWhatSharesAScaleIsTheGreatestCode) {
  std::vector<float> values = random_floats(rows * k, 2);
  for (const Case& one : cases()) {
    const Fp8Matrix matrix =
        quantize_fp8(Tensor::contiguous(values.data(), Format::fp32, {rows, k}), "w", one.format, one.role, one.layout);
    std::vector<float> largest(matrix.scales.size());
    std::vector<int> largest_code(matrix.scales.size());
    for (std::int64_t i = 0; i < rows * k; ++i) {
      const std::size_t scale = scale_of(one, i / k, i % k, rows, k);
      const float value = values[static_cast<std::size_t>(i)];
      const std::uint8_t code = matrix.values[static_cast<std::size_t>(i)];
      largest[scale] = std::max(largest[scale], std::fabs(value));
      largest_code[scale] = std::max(largest_code[scale], code & 0x7F);
      EXPECT_EQ(code, float_to_e4m3(value / matrix.scales[scale]));
    }
    for (std::size_t i = 0; i < largest.size(); ++i) {
      const bool is_padding = largest[i] == 0;
      EXPECT_EQ(matrix.scales[i], is_padding ? 0.0F : largest[i] / 448.0F) << name(one.format) << " scale " << i;
      EXPECT_EQ(largest_code[i], is_padding ? 0 : 0x7E) << name(one.format) << " scale " << i;
    }
  }
}

TEST(Fp8, ZerosHaveTheScaleOne) {
  std::vector<float> zeros(4 * 128);
  for (const Case& one : cases()) {
    Fp8Matrix matrix =
        quantize_fp8(Tensor::contiguous(zeros.data(), Format::fp32, {4, 128}), "w", one.format, one.role, one.layout);
    for (const float scale : matrix.scales) {
      EXPECT_EQ(scale, 1.0F) << name(one.format);
    }
    EXPECT_EQ(element(matrix.view(), 3, 127), 0.0);
  }
}

TEST(Fp8, RefusesWhatItCannotHold) {
  std::vector<float> values(2 * 32, 1.0F);
  const auto sentence = [&](std::int64_t columns, Format format, OperandRole role, ScaleLayout layout) -> std::string {
    try {
      (void)quantize_fp8(Tensor::contiguous(values.data(), Format::fp32, {2, columns}), "w", format, role, layout);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(sentence(24, Format::fp8_row, OperandRole::tokens, ScaleLayout::row_major),
            "w has K = 24, but fp8_row needs a K that is a multiple of 16");
  EXPECT_EQ(sentence(32, Format::fp8_row, OperandRole::tokens, ScaleLayout::column_major),
            "w is to have column-major scales, which those of tokens in fp8_row cannot be");
  EXPECT_EQ(sentence(32, Format::fp8_block, OperandRole::weights, ScaleLayout::column_major),
            "w is to have column-major scales, which those of weights in fp8_block cannot be");
  values[40] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sentence(32, Format::fp8_block, OperandRole::weights, ScaleLayout::row_major),
            "w has inf at [1, 8], which fp8_block cannot hold; every element must be finite");
}

TEST(Fp8, ScalesOfAnotherShapeAreRefused) {
  std::vector<std::uint8_t> values(128 * 256);
  std::vector<float> scales(512);
  Tensor matrix = Tensor::fp8(values.data(), Format::fp8_block, OperandRole::weights, scales.data(), 128, 256);
  EXPECT_NO_THROW(check_matrix(matrix, "w", 128, 256, Format::fp8_block));
  matrix.scales.block = {1, 64};
  EXPECT_THROW(check_matrix(matrix, "w", 128, 256, Format::fp8_block), Error);
  matrix.describe_scales(OperandRole::tokens);
  EXPECT_NO_THROW(check_matrix(matrix, "w", 128, 256, Format::fp8_block));
  matrix.scales.data = nullptr;
  EXPECT_THROW(check_matrix(matrix, "w", 128, 256, Format::fp8_block), Error);
}

}  // namespace
}  // namespace thresher::formats
