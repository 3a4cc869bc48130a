// MXFP4, element by element: quantised as the OCP Microscaling specification says, and held as NVFP4 where the
// exponents allow it, else in bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/grouped_weights.hpp"
#include "formats/elements.hpp"
#include "formats/mxfp4.hpp"
#include "formats/numbers.hpp"
#include "formats/operands.hpp"
#include "formats/stacks.hpp"
#include "support/scratch_folder.hpp"

namespace thresher::formats {
namespace {

constexpr std::int64_t mxfp4_experts = 3;
constexpr std::int64_t mxfp4_rows = 5;
constexpr std::int64_t mxfp4_k = 96;

/// Exponents of expert e: `least[e]` to that and `span`, each somewhere, neighbours different.
struct Mxfp4Blocks {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> exponents;

  explicit Mxfp4Blocks(unsigned span, std::vector<unsigned> least = {100, 120, 3}) {
    for (std::int64_t i = 0; i < mxfp4_experts * mxfp4_rows * mxfp4_k / 2; ++i) {
      codes.push_back(static_cast<std::uint8_t>(i * 37 % 251));
    }
    for (std::int64_t block = 0; block < mxfp4_experts * mxfp4_rows * mxfp4_k / 32; ++block) {
      const auto expert = static_cast<std::size_t>(block / (mxfp4_rows * mxfp4_k / 32));
      const auto step = static_cast<unsigned>(block) * 7 % (span + 1);
      exponents.push_back(static_cast<std::uint8_t>(least[expert] + (block % 2 == 0 ? step : span - step)));
    }
    for (std::size_t expert = 0; expert < mxfp4_experts; ++expert) {
      exponents[expert * mxfp4_rows * mxfp4_k / 32] = static_cast<std::uint8_t>(least[expert]);
      exponents[expert * mxfp4_rows * mxfp4_k / 32 + 1] = static_cast<std::uint8_t>(least[expert] + span);
    }
  }
  [[nodiscard]] double value(std::int64_t at) const {
    const std::uint8_t pair = codes[static_cast<std::size_t>(at / 2)];
    return static_cast<double>(e2m1_to_float(at % 2 == 0 ? pair & 0xF : pair >> 4)) *
           std::exp2(static_cast<int>(exponents[static_cast<std::size_t>(at / 32)]) - 127);
  }
};

Stack loaded_mxfp4(const Mxfp4Blocks& blocks) {
  const ScratchFolder folder;
  const std::vector<TensorToWrite> tensors{
      {"w_blocks", Dtype::u8, {mxfp4_experts, mxfp4_rows, mxfp4_k / 32, 16}, std::as_bytes(std::span(blocks.codes))},
      {"w_scales", Dtype::u8, {mxfp4_experts, mxfp4_rows, mxfp4_k / 32}, std::as_bytes(std::span(blocks.exponents))}};
  write_safetensors(folder / "w.safetensors", tensors);
  return load_mxfp4_blocks(Checkpoint(folder / "w.safetensors"), "w");
}

void expect_exact_mxfp4(const Mxfp4Blocks& blocks, const Stack& stack) {
  const Tensor view = stack.view();
  for (std::int64_t at = 0; at < mxfp4_experts * mxfp4_rows * mxfp4_k; ++at) {
    const Tensor matrix = slot_matrix(view, at / (mxfp4_rows * mxfp4_k));
    const double value = element(matrix, at / mxfp4_k % mxfp4_rows, at % mxfp4_k) * global_scale(matrix);
    ASSERT_EQ(value, blocks.value(at)) << at;
  }
}

TEST(Mxfp4, IsHeldAsNvfp4WhereItsExponentsAllowIt) {
  for (const unsigned span : {0U, 5U, 11U, 12U, 17U}) {
    const Mxfp4Blocks blocks(span);
    const Stack stack = loaded_mxfp4(blocks);
    EXPECT_EQ(stack.format(), span == 0 || span == 5 ? Format::bf16 : Format::nvfp4) << span;
    expect_exact_mxfp4(blocks, stack);
  }
  for (const unsigned span : {0U, 5U, 11U, 12U, 17U}) {
    const Mxfp4Blocks blocks(span, {100, 120, 9});
    const Stack stack = loaded_mxfp4(blocks);
    EXPECT_EQ(stack.format(), Format::nvfp4) << span;
    EXPECT_EQ(stack.stored_as(), span <= 11 ? "mxfp4 as nvfp4, exact in both numerics"
                                            : "mxfp4 as nvfp4, exact in 16 bits (fast may round: exponents are " +
                                                  std::to_string(span) + " apart, more than 11)");
    expect_exact_mxfp4(blocks, stack);
  }
}

TEST(Mxfp4, IsWidenedWhereItsExponentsAreTooFarApart) {
  const Mxfp4Blocks blocks(18);
  const Stack stack = loaded_mxfp4(blocks);
  EXPECT_EQ(stack.format(), Format::bf16);
  EXPECT_EQ(stack.stored_as(), "mxfp4 as bf16, exact (nvfp4 does not hold all exponents)");
  expect_exact_mxfp4(blocks, stack);
}

/// Nothing is multiplied by the exponent of a block of zeros.
TEST(Mxfp4, BlocksOfZerosMayHaveAnyExponent) {
  Mxfp4Blocks blocks(11);
  blocks.exponents[2] = 0;
  blocks.exponents[4] = 250;
  for (std::size_t i = 0; i < 16; ++i) {
    blocks.codes[2 * 16 + i] = 0x80;
    blocks.codes[4 * 16 + i] = 0x08;
  }
  const Stack stack = loaded_mxfp4(blocks);
  EXPECT_EQ(stack.format(), Format::nvfp4);
  EXPECT_EQ(stack.stored_as(), "mxfp4 as nvfp4, exact in both numerics");
  expect_exact_mxfp4(blocks, stack);
}

TEST(Mxfp4, BlocksOfWhichAHalfIsZerosAreNoBlocksOfZeros) {
  for (const std::size_t half : {0U, 1U}) {
    Mxfp4Blocks blocks(11);
    blocks.exponents[4] = 250;
    for (std::size_t i = 0; i < 16; ++i) {
      blocks.codes[4 * 16 + i] = i / 8 == half ? 0x80 : 0x12;
    }
    const Stack stack = loaded_mxfp4(blocks);
    EXPECT_EQ(stack.format(), Format::bf16) << half;
    expect_exact_mxfp4(blocks, stack);
  }
}

/// They have no exponents that nvfp4 could not hold; of any number of them there is no global scale for each.
TEST(Mxfp4, MatricesWithoutRowsAreHeldAsNvfp4) {
  for (const std::size_t matrices : {1U, 3U}) {
    const HeldMxfp4 held = hold_mxfp4({}, {}, matrices, "the exponents");
    EXPECT_EQ(held.format, Format::nvfp4);
    EXPECT_EQ(held.global_scales, std::vector<float>(matrices, 1.0F));
    EXPECT_EQ(stored_as(held.format, held.span), "mxfp4 as nvfp4, exact in both numerics");
  }
  EXPECT_TRUE(hold_mxfp4({}, {}, std::size_t{1} << 62, "the exponents").global_scales.empty());
}

/// The same experts as one tensor under compressed-tensors' names, as matrices of their own, and as gpt-oss has them.
TEST(Mxfp4, IsTheSameUnderEveryName) {
  for (const unsigned span : {9U, 15U, 18U}) {
    const Mxfp4Blocks blocks(span, {100, 120, 30});
    const ScratchFolder folder;
    constexpr std::size_t of_one = mxfp4_rows * mxfp4_k;
    std::vector<TensorToWrite> tensors{{"all.weight_packed",
                                        Dtype::u8,
                                        {mxfp4_experts, mxfp4_rows, mxfp4_k / 2},
                                        std::as_bytes(std::span(blocks.codes))},
                                       {"all.weight_scale",
                                        Dtype::u8,
                                        {mxfp4_experts, mxfp4_rows, mxfp4_k / 32},
                                        std::as_bytes(std::span(blocks.exponents))}};
    std::vector<std::string> names;
    for (std::size_t expert = 0; expert < mxfp4_experts; ++expert) {
      names.push_back("experts." + std::to_string(expert) + ".w1");
      tensors.push_back({names.back() + ".weight",
                         Dtype::u8,
                         {mxfp4_rows, mxfp4_k / 2},
                         std::as_bytes(std::span(blocks.codes).subspan(expert * of_one / 2, of_one / 2))});
      tensors.push_back({names.back() + ".weight_scale",
                         Dtype::f8_e8m0,
                         {mxfp4_rows, mxfp4_k / 32},
                         std::as_bytes(std::span(blocks.exponents).subspan(expert * of_one / 32, of_one / 32))});
    }
    write_safetensors(folder / "w.safetensors", tensors);
    const Checkpoint checkpoint(folder / "w.safetensors");
    const Stack one = load_stack(checkpoint, "all", StackKind::weights, ScaleLayout::row_major);
    const Stack several = load_experts(checkpoint, names, ScaleLayout::row_major);
    expect_exact_mxfp4(blocks, one);
    expect_exact_mxfp4(blocks, several);
    EXPECT_EQ(one.stored_as(), loaded_mxfp4(blocks).stored_as());
    EXPECT_EQ(several.stored_as(), one.stored_as());
  }
}

/// A product has operands of one format: where one matrix has to be in bf16, so are those that it is multiplied beside.
TEST(Mxfp4, MatricesThatBelongTogetherAreHeldAlike) {
  Mxfp4Blocks blocks(10);
  blocks.exponents[2 * mxfp4_rows * mxfp4_k / 32] = 60;  // the third alone does not fit
  blocks.codes[2 * mxfp4_rows * mxfp4_k / 2] = 0x11;
  const ScratchFolder folder;
  std::vector<TensorToWrite> tensors;
  std::vector<std::string> names;
  constexpr std::size_t of_one = mxfp4_rows * mxfp4_k;
  for (std::size_t expert = 0; expert < mxfp4_experts; ++expert) {
    names.push_back("w" + std::to_string(expert));
    tensors.push_back({names.back(),
                       Dtype::u8,
                       {mxfp4_rows, mxfp4_k / 2},
                       std::as_bytes(std::span(blocks.codes).subspan(expert * of_one / 2, of_one / 2))});
    tensors.push_back({names.back() + "_scale",
                       Dtype::u8,
                       {mxfp4_rows, mxfp4_k / 32},
                       std::as_bytes(std::span(blocks.exponents).subspan(expert * of_one / 32, of_one / 32))});
  }
  write_safetensors(folder / "w.safetensors", tensors);
  const Checkpoint checkpoint(folder / "w.safetensors");
  Operand first = load_operand(checkpoint, names[0]);
  Operand second = load_operand(checkpoint, names[2]);
  ASSERT_EQ(first.format(), Format::nvfp4);
  ASSERT_EQ(second.format(), Format::bf16);
  hold_alike(first, second);
  EXPECT_EQ(first.format(), Format::bf16);
  for (std::int64_t at = 0; at < mxfp4_rows * mxfp4_k; ++at) {
    ASSERT_EQ(element(first.view(), at / mxfp4_k, at % mxfp4_k), blocks.value(at)) << at;
  }
  const Stack experts = load_experts(checkpoint, names, ScaleLayout::row_major);
  EXPECT_EQ(experts.stored_as(), "mxfp4 as bf16, exact (nvfp4 does not hold all exponents)");
  expect_exact_mxfp4(blocks, experts);
}

/// The nearest of e2m1's numbers, of two that are as near the one with an even code; beyond 6 it is 6.
double nearest_e2m1(double value) {
  constexpr std::array magnitudes{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  std::size_t best = 0;
  for (std::size_t code = 1; code < magnitudes.size(); ++code) {
    const double was = std::fabs(std::fabs(value) - magnitudes[best]);
    const double is = std::fabs(std::fabs(value) - magnitudes[code]);
    best = is < was || (is == was && code % 2 == 0) ? code : best;
  }
  return std::copysign(magnitudes[best], value);
}

/// 32 values and what the specification makes of them (6.3: the shared scale is the largest power of two that is not
/// above the largest magnitude, over the largest power of two that e2m1 has, 4).
void expect_quantised(std::vector<float> values) {
  values.resize(32);
  double largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(static_cast<double>(value)));
  }
  int exponent = -127;
  while (largest > 0 && exponent < 127 && std::exp2(exponent + 1) <= largest / 4) {
    ++exponent;
  }
  const Mxfp4Matrix made = quantize_mxfp4(Tensor::contiguous(values.data(), Format::fp32, {1, 32}), "w");
  ASSERT_EQ(made.exponents, std::vector{static_cast<std::uint8_t>(exponent + 127)}) << largest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(made.values[i / 2] >> (i % 2 == 0 ? 0 : 4) & 0xF);
    EXPECT_EQ(static_cast<double>(e2m1_to_float(code)),
              nearest_e2m1(static_cast<double>(values[i]) / std::exp2(exponent)))
        << values[i] << " of " << largest;
  }
}

TEST(Mxfp4, IsQuantisedAsItsSpecificationSays) {
  expect_quantised({});
  expect_quantised({1.0F, 0.99F, -0.124F, 0.125F, -0.126F, 0.3F});
  // Halfway between two of e2m1's numbers, and beyond the largest: 7.99 of 8 is 6.
  expect_quantised({4.0F, 0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, -5.0F, -0.25F});
  expect_quantised({7.99F, 7.0F, 6.0F, 5.01F, 5.0F, -7.5F});
  expect_quantised({8.0F, 7.99F, 0.5F, 0.49F});
  expect_quantised({std::numeric_limits<float>::max(), 1.0F, 0x1p+124F});
  expect_quantised({0x1p-125F, 0x1p-127F, 0x1p-128F, -0x1p-129F});
  expect_quantised({0x1p-126F, 0x3p-128F, 0x1p-149F});
  expect_quantised({0x1p-149F});
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<float> values;
    for (int i = 0; i < 32; ++i) {
      values.push_back(std::ldexp(static_cast<float>((draw * 7919 + i * 104729) % 4001 - 2000), draw % 40 - 20));
    }
    expect_quantised(values);
  }
}

/// What MXFP4 holds comes back: one exponent is right for it, and every value has its code.
TEST(Mxfp4, WhatItHoldsIsQuantisedToItself) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < 3; ++row) {
    for (int i = 0; i < 64; ++i) {
      values.push_back(
          std::ldexp(e2m1_to_float(static_cast<std::uint8_t>(i * 5 % 16)), static_cast<int>(row) * 3 - i / 32));
    }
  }
  const Mxfp4Matrix made = quantize_mxfp4(Tensor::contiguous(values.data(), Format::fp32, {3, 64}), "w");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(made.values[i / 2] >> (i % 2 == 0 ? 0 : 4) & 0xF);
    EXPECT_EQ(std::ldexp(e2m1_to_float(code), made.exponents[i / 32] - 127), values[i]) << i;
  }
}

}  // namespace
}  // namespace thresher::formats
