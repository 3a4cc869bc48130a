// MXFP4 weights of experts, element by element: held as NVFP4 where the exponents allow it, else in bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/grouped_weights.hpp"
#include "formats/elements.hpp"
#include "formats/numbers.hpp"
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
    EXPECT_EQ(stack.folds_exactly(), span <= 11) << span;
    expect_exact_mxfp4(blocks, stack);
  }
}

TEST(Mxfp4, IsWidenedWhereItsExponentsAreTooFarApart) {
  const Mxfp4Blocks blocks(18);
  const Stack stack = loaded_mxfp4(blocks);
  EXPECT_EQ(stack.format(), Format::bf16);
  EXPECT_FALSE(stack.folds_exactly());
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
  EXPECT_TRUE(stack.folds_exactly());
  expect_exact_mxfp4(blocks, stack);
}

}  // namespace
}  // namespace thresher::formats
