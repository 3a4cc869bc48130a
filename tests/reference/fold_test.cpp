// Numerics fast: what folding does to operands, and what that costs.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/elements.hpp"
#include "formats/mxfp4.hpp"
#include "formats/numbers.hpp"
#include "reference/fold.hpp"
#include "reference/fold_error.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::reference {
namespace {

using test::Matrix;

Matrix of_one_row(std::initializer_list<std::uint8_t> scales, std::uint8_t code) {
  const std::vector<std::uint8_t> all = scales;
  return Matrix::nvfp4(
      1, static_cast<std::int64_t>(all.size()) * 16, {.global_scales = false},
      [&](std::int64_t, std::int64_t) { return code; },
      [&](std::int64_t, std::int64_t group) { return all[static_cast<std::size_t>(group)]; }, 1.0F);
}

TEST(Fold, AnElementIsRoundedOnce) {
  // Scale code 0x39 is 1.125: 1.5 times it is 1.6875, between 1.625 and 1.75, a tie that goes to 1.75.
  Matrix matrix = of_one_row({0x39, 0x39}, 0x3);
  EXPECT_EQ(fold_weights(matrix.view()).values.front(), 1.75F);
  EXPECT_EQ(fold_tokens(matrix.view()).values.front(), 1.75F);
  Matrix doubled = of_one_row({0x39}, 0x4);
  EXPECT_EQ(fold_weights(doubled.view()).values.front(), 2.25F);
}

TEST(Fold, TheLargestScaleDoesNotSaturate) {
  Matrix matrix = of_one_row({0x7E}, 0x7);                         // 448 · 6
  EXPECT_EQ(fold_weights(matrix.view()).values.front(), 2560.0F);  // 336 is a tie of 320 and 352
}

TEST(Fold, RowsOfTinyScalesKeepTheirPrecision) {
  Matrix matrix = of_one_row({0x01, 0x01}, 0x7);  // 2^-9 · 6
  EXPECT_EQ(fold_weights(matrix.view()).values.front(), 6 * 0x1p-9F);
}

TEST(Fold, GroupsFarBelowTheRowsLargestAreQuantisedAgain) {
  Matrix matrix = of_one_row({0x7E, 0x01}, 0x7);  // 448 and 2^-9: 2^-9·6 moves to 6·2^-12, below half of 2^-6
  const Folded weights = fold_weights(matrix.view());
  EXPECT_EQ(weights.values.front(), 2560.0F);
  EXPECT_EQ(weights.values.back(), 0.0F);
  // Tokens have no such limit but e4m3's own: 1.5·2^-10 goes to its smallest number, 2^-9, here moved back by 2^3.
  EXPECT_EQ(fold_tokens(matrix.view()).values.back(), 0x1p-6F);
}

/// What is said of MXFP4 when it is packed: every value of it comes through folding where its exponents are 11 apart at
/// the most, and not all of them where they are further apart.
TEST(Fold, Mxfp4IsExactWhereItIsSaidToBe) {
  for (unsigned span = 0; span <= 17; ++span) {
    std::vector<std::byte> codes;
    std::vector<std::byte> exponents;
    for (const unsigned exponent : {120 + span, 120U, 120 + span / 2}) {
      exponents.push_back(static_cast<std::byte>(exponent));
      for (unsigned pair = 0; pair < 16; ++pair) {
        codes.push_back(static_cast<std::byte>(pair * 17));  // each code twice
      }
    }
    formats::HeldMxfp4 held = formats::hold_mxfp4(codes, exponents, 1, "the exponents");
    ASSERT_EQ(held.format, Format::nvfp4);
    const Tensor weights = Tensor::nvfp4(held.data.data(), reinterpret_cast<const std::uint8_t*>(held.scales.data()), 1,
                                         96, held.global_scales.data());
    const Folded folded = fold_weights(weights);
    bool is_exact = true;
    for (std::int64_t i = 0; i < 96; ++i) {
      is_exact = is_exact &&
                 static_cast<double>(folded.values[static_cast<std::size_t>(i)]) == formats::element(weights, 0, i);
    }
    EXPECT_EQ(is_exact, formats::folds_mxfp4_exactly(held.format, held.span)) << span;
    EXPECT_EQ(is_exact, span <= 11) << span;
  }
}

TEST(Fold, NaNSpoilsItsRow) {
  Matrix matrix = of_one_row({0x38, 0x7F}, 0x2);
  for (const float value : fold_weights(matrix.view()).values) {
    EXPECT_TRUE(std::isnan(value));
  }
  Matrix wide = Matrix::of_values(Format::fp16, 2, 16, 0, [](std::int64_t row, std::int64_t column) {
    return row == 1 && column == 5 ? INFINITY : 1.0F;
  });
  const Folded tokens = fold_tokens(wide.view());
  EXPECT_EQ(tokens.values[0], 1.0F);
  EXPECT_TRUE(std::isnan(tokens.values[16]));
}

TEST(Fold, CostsLessThanFourBitsThemselvesOnEveryKindOfData) {
  for (const FourBits weights : all_four_bits) {
    for (const Data data : all_data) {
      for (const Format tokens : {Format::fp16, Format::nvfp4}) {
        SCOPED_TRACE(std::string(name(weights)) + " weights, " + std::string(name(data)));
        const FoldErrors errors = fold_errors(data, weights, tokens, 16, 64, 1024, 1);
        EXPECT_GT(errors.fast, 1e-2);
        EXPECT_LT(errors.fast, 6e-2);
        EXPECT_LT(errors.fast, (weights == FourBits::mxfp4 ? 0.35 : 0.6) * errors.packed);  // MXFP4 is not rounded
        EXPECT_LT(errors.both, 1.25 * errors.packed);
        EXPECT_LT(errors.accumulation, 2e-2);
      }
    }
  }
}

}  // namespace
}  // namespace thresher::reference
