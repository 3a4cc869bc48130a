#include "formats/decode.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/elements.hpp"

namespace thresher::formats {
namespace {

TEST(Decode, GivesForEveryFormatWhatElementGives) {
  constexpr std::int64_t rows = 130;
  constexpr std::int64_t columns = 80;
  constexpr std::int64_t stride = 96;
  std::mt19937 random(3);
  std::vector<std::uint8_t> bytes(std::size_t{rows} * stride * 4);
  std::vector<std::uint8_t> scales(scale_bytes(rows, columns, ScaleLayout::blocked));
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  for (std::uint8_t& scale : scales) {
    scale = static_cast<std::uint8_t>(random());
  }
  for (const Format format :
       {Format::fp32, Format::fp16, Format::bf16, Format::fp8_e4m3, Format::nvfp4, Format::int32, Format::uint8}) {
    for (const ScaleLayout layout : {ScaleLayout::row_major, ScaleLayout::blocked}) {
      Tensor matrix = Tensor::contiguous(bytes.data(), format, {rows, columns});
      matrix.strides[0] = stride;
      matrix.scales.data = scales.data();
      matrix.scales.layout = layout;
      for (const std::int64_t row : {0, 1, 77, 129}) {
        std::vector<double> wide(columns);
        std::vector<float> narrow(columns);
        decode_row(matrix, row, wide);
        decode_row(matrix, row, narrow);
        for (std::int64_t column = 0; column < columns; ++column) {
          const double expected = element(matrix, row, column);
          const auto i = static_cast<std::size_t>(column);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(wide[i]) && std::isnan(narrow[i])) << name(format);
          } else {
            ASSERT_EQ(wide[i], expected) << name(format) << " " << row << " " << column;
            ASSERT_EQ(narrow[i], static_cast<float>(expected)) << name(format) << " " << row << " " << column;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace thresher::formats
