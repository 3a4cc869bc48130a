#include "formats/elements.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "formats/numbers.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

std::string refusal(const Tensor& tensor, std::int64_t rows, std::int64_t columns, Format format) {
  try {
    check_matrix(tensor, "b1 (gate)", rows, columns, format);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Elements, ReadsEveryFormatThroughARowStride) {
  std::vector<std::uint16_t> halves(2 * 5, float_to_fp16(-99.0F));
  halves[1 * 5 + 2] = float_to_fp16(1.5F);
  Tensor half = Tensor::contiguous(halves.data(), Format::fp16, {2, 3});
  half.strides[0] = 5;
  EXPECT_EQ(element(half, 1, 2), 1.5);

  half.format = Format::bf16;
  halves[1 * 5 + 2] = float_to_bf16(-2.5F);
  EXPECT_EQ(element(half, 1, 2), -2.5);

  std::vector<float> floats{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(element(Tensor::contiguous(floats.data(), Format::fp32, {2, 3}), 1, 0), 4.0);
  std::vector<std::uint8_t> bytes{0x38, 0x7F, 0xFE};
  const Tensor fp8 = Tensor::contiguous(bytes.data(), Format::fp8_e4m3, {1, 3});
  EXPECT_EQ(element(fp8, 0, 0), 1.0);
  EXPECT_TRUE(std::isnan(element(fp8, 0, 1)));
  EXPECT_EQ(element(fp8, 0, 2), -448.0);
  EXPECT_EQ(element(Tensor::contiguous(bytes.data(), Format::uint8, {1, 3}), 0, 2), 254.0);
  std::vector<std::int32_t> ints{-7};
  EXPECT_EQ(element(Tensor::contiguous(ints.data(), Format::int32, {1, 1}), 0, 0), -7.0);
}

TEST(Elements, Nvfp4TakesTheLowNibbleFirstAndHonoursTheSignOfTheScale) {
  std::vector<std::uint8_t> values(2 * 16, 0x00);  // [2, 32]
  values[16 + 8] = 0xF2;                           // row 1, columns 16 and 17: 1 and -6
  std::vector<std::uint8_t> scales{0x38, 0x38, 0x38, 0xC0};
  const float global = 0.25F;
  const Tensor tensor = Tensor::nvfp4(values.data(), scales.data(), 2, 32, &global);
  EXPECT_EQ(element(tensor, 1, 16), -2.0);
  EXPECT_EQ(element(tensor, 1, 17), 12.0);
  EXPECT_EQ(global_scale(tensor), 0.25);
  scales[3] = 0x7F;
  EXPECT_TRUE(std::isnan(element(tensor, 1, 18)));
  EXPECT_EQ(element(tensor, 1, 15), 0.0);
}

TEST(Elements, BlockedScalesLieWhereTheLayoutSays) {
  // The offsets written out from the layout's definition: [rows/128][C/4] tiles of 32 × 4 × 4 bytes.
  EXPECT_EQ(scale_offset(0, 0, 8, ScaleLayout::blocked), 0U);
  EXPECT_EQ(scale_offset(0, 3, 8, ScaleLayout::blocked), 3U);
  EXPECT_EQ(scale_offset(0, 4, 8, ScaleLayout::blocked), 512U);
  EXPECT_EQ(scale_offset(1, 0, 8, ScaleLayout::blocked), 16U);
  EXPECT_EQ(scale_offset(32, 0, 8, ScaleLayout::blocked), 4U);
  EXPECT_EQ(scale_offset(127, 7, 8, ScaleLayout::blocked), 512U + 31U * 16U + 3U * 4U + 3U);
  EXPECT_EQ(scale_offset(128, 0, 8, ScaleLayout::blocked), 1024U);
  EXPECT_EQ(scale_offset(128, 0, 5, ScaleLayout::blocked), 1024U);
  EXPECT_EQ(scale_offset(3, 2, 5, ScaleLayout::row_major), 17U);
}

TEST(Elements, RefusesWhatItCannotReadAndNamesIt) {
  std::vector<std::uint8_t> bytes(1024);
  const Tensor good = Tensor::nvfp4(bytes.data(), bytes.data(), 4, 32);
  EXPECT_EQ(refusal(good, 4, 32, Format::nvfp4), "");
  EXPECT_NE(refusal(good, 4, 32, Format::fp16).find("b1 (gate) is nvfp4, but the problem says fp16"),
            std::string::npos);
  EXPECT_NE(refusal(good, 5, 32, Format::nvfp4).find("[4, 32], but the problem needs [5, 32]"), std::string::npos);

  Tensor bad = good;
  bad.rank = 3;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("3 dimensions"), std::string::npos);
  bad = good;
  bad.data = nullptr;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("pointer is null"), std::string::npos);
  bad = good;
  bad.scales.data = nullptr;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("without scales"), std::string::npos);
  bad = good;
  bad.strides[0] = 33;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("even stride"), std::string::npos);
  bad.strides[0] = 30;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("must not overlap"), std::string::npos);
  bad.strides[0] = std::int64_t{1} << 62;
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("more than 63 bits can count"), std::string::npos);
  bad = good;
  bad.device = {DeviceKind::cuda, 0};
  EXPECT_NE(refusal(bad, 4, 32, Format::nvfp4).find("GPU memory"), std::string::npos);
  EXPECT_NE(refusal(Tensor::nvfp4(bytes.data(), bytes.data(), 4, 24), 4, 24, Format::nvfp4).find("multiple of 16"),
            std::string::npos);
  EXPECT_EQ(refusal(Tensor::contiguous(nullptr, Format::fp16, {0, 32}), 0, 32, Format::fp16), "");
}

}  // namespace
}  // namespace thresher::formats
