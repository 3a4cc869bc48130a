#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

#include "core/integers.hpp"
#include "thresher/tensor.hpp"

namespace thresher {
namespace {

constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();

TEST(Sizes, WhatDoesNotFitIsTooLargeAndStaysSo) {
  EXPECT_EQ(size_product(6, 7), 42);
  EXPECT_EQ(size_product(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
  EXPECT_EQ(size_product(std::int64_t{1} << 32, std::int64_t{1} << 31), too_large);
  EXPECT_EQ(size_product(std::int64_t{1} << 32, std::int64_t{1} << 32), too_large);  // 2^64, which wraps to 0
  EXPECT_EQ(size_product(too_large, 0), too_large);
  EXPECT_EQ(size_product(0, greatest - 1), 0);
}

TEST(Sizes, NothingTimesAnythingIsNothing) {
  EXPECT_EQ(size_product(std::array<std::int64_t, 3>{std::int64_t{1} << 62, 4, 0}), 0);
  EXPECT_EQ(size_product(std::array<std::int64_t, 3>{std::int64_t{1} << 62, 4, 1}), too_large);
  EXPECT_EQ(size_product(std::array<std::int64_t, 0>{}), 1);
}

TEST(Sizes, GroupsOfTheGreatestCountDoNotOverflow) {
  EXPECT_EQ(ceil_div(greatest, 128), (std::int64_t{1} << 56));
  EXPECT_EQ(ceil_div(0, 16), 0);
  EXPECT_EQ(ceil_div(17, 16), 2);
  EXPECT_EQ(round_up(17, 16), 32);
  EXPECT_EQ(round_up(greatest, 128), too_large);
}

TEST(Sizes, ATensorThatCannotBeIsTooLargeForAnyMemory) {
  const std::int64_t many = std::int64_t{1} << 40;
  EXPECT_EQ(Tensor::contiguous(nullptr, Format::fp16, {many, many}).elements(), too_large);
  EXPECT_EQ(Tensor::contiguous(nullptr, Format::fp16, {many, many, 0}).elements(), 0);
  EXPECT_EQ(scale_bytes(many, many, ScaleLayout::row_major), static_cast<std::size_t>(too_large));
  EXPECT_EQ(scale_bytes(many, many, ScaleLayout::blocked), static_cast<std::size_t>(too_large));
  EXPECT_EQ(scale_bytes(greatest, 0, ScaleLayout::blocked), 0U);
  EXPECT_EQ(scale_bytes(Tensor::nvfp4(nullptr, nullptr, many, many)), static_cast<std::size_t>(too_large));
}

}  // namespace
}  // namespace thresher
