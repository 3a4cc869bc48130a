#include "thresher/tensor.hpp"

#include <gtest/gtest.h>

namespace thresher {
namespace {

TEST(Tensor, ContiguousViewHasRowMajorStrides) {
  const Tensor tensor = Tensor::contiguous(nullptr, Format::fp16, {3, 5, 7});
  EXPECT_EQ(tensor.rank, 3);
  EXPECT_EQ(tensor.strides[0], 35);
  EXPECT_EQ(tensor.strides[1], 7);
  EXPECT_EQ(tensor.strides[2], 1);
  EXPECT_EQ(tensor.elements(), 105);
  EXPECT_TRUE(tensor.is_contiguous());
}

TEST(Tensor, PaddedRowsAreNotContiguous) {
  Tensor tensor = Tensor::contiguous(nullptr, Format::fp16, {3, 5});
  tensor.strides[0] = 8;
  EXPECT_FALSE(tensor.is_contiguous());
}

TEST(Tensor, ScaleBytesPadTheBlockedLayout) {
  EXPECT_EQ(scale_bytes(5, 48, ScaleLayout::row_major), 15U);
  EXPECT_EQ(scale_bytes(5, 48, ScaleLayout::blocked), 512U);
  EXPECT_EQ(scale_bytes(129, 80, ScaleLayout::blocked), 2U * 2U * 512U);
}

TEST(Tensor, ScaleBytesFollowTheBlockAndTheFormatOfTheScales) {
  EXPECT_EQ(scale_bytes(Tensor::contiguous(nullptr, Format::fp16, {5, 48})), 0U);
  Tensor tensor = Tensor::nvfp4(nullptr, nullptr, 129, 80);
  EXPECT_EQ(scale_bytes(tensor), 129U * 5U);
  tensor.scales.layout = ScaleLayout::blocked;
  EXPECT_EQ(scale_bytes(tensor), scale_bytes(129, 80, ScaleLayout::blocked));
  tensor.scales = {.format = Format::fp32, .block = {128, 32}};
  EXPECT_EQ(scale_bytes(tensor), 2U * 3U * 4U);
}

}  // namespace
}  // namespace thresher
