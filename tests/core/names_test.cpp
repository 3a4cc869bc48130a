#include <gtest/gtest.h>

#include <algorithm>
#include "core/arch.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher {
namespace {

/// Every enumerator's name stands for it alone, and other words for none.
template <class Enum, std::size_t count, class Parse>
void expect_that_names_stand_for(const std::array<Enum, count>& all, Parse parse) {
  for (const Enum one : all) {
    EXPECT_EQ(parse(name(one)), one) << name(one);
  }
  for (const std::string_view other : {"", "unknown", "FP16", " fp16", "nvfp", "sm_90"}) {
    EXPECT_FALSE(parse(other).has_value()) << other;
  }
}

TEST(Names, EveryNameStandsForItsEnumerator) {
  expect_that_names_stand_for(all_formats, parse_format);
  expect_that_names_stand_for(all_scale_layouts, parse_scale_layout);
  expect_that_names_stand_for(all_activation_kinds, parse_activation_kind);
  expect_that_names_stand_for(all_numerics, parse_numerics);
  expect_that_names_stand_for(all_archs, parse_arch);
}

TEST(FormatTraits, ThoseOfEveryFormat) {
  for (const Format format : all_formats) {
    const FormatTraits& traits = format_traits(format);
    EXPECT_GT(traits.bits, 0) << traits.name;
    EXPECT_EQ(traits.has_scales(), traits.values_per_scale > 0) << traits.name;
    const bool has_global_scale_alone = format == Format::fp8_tensor;
    EXPECT_EQ(traits.product_format == format, !traits.has_scales() && !has_global_scale_alone) << traits.name;
    EXPECT_EQ(format_traits(traits.product_format).product_format, traits.product_format) << traits.name;
    EXPECT_GE(traits.weight_rows_per_scale, 1) << traits.name;
    if (traits.is_operand) {
      EXPECT_GT(traits.k_multiple, 1) << traits.name;
      EXPECT_GE(format_traits(traits.product_format).bits, 8) << traits.name;
    }
  }
}

TEST(FormatTraits, OfNvfp4) {
  const FormatTraits& traits = format_traits(Format::nvfp4);
  EXPECT_EQ(traits.name, "nvfp4");
  EXPECT_EQ(traits.bits, 4);
  EXPECT_EQ(traits.stored_bits(), 4.5);
  EXPECT_EQ(traits.scale_format, Format::fp8_e4m3);
  EXPECT_EQ(traits.values_per_scale, 16);
  EXPECT_EQ(traits.k_multiple, 16);
  EXPECT_EQ(traits.n_multiple, 16);
  EXPECT_TRUE(traits.is_operand);
  EXPECT_TRUE(traits.is_quantized_output());
}

TEST(FormatTraits, OfFp8) {
  for (const Format format : {Format::fp8_tensor, Format::fp8_row, Format::fp8_block}) {
    const FormatTraits& traits = format_traits(format);
    EXPECT_EQ(traits.bits, 8) << traits.name;
    EXPECT_EQ(traits.product_format, Format::fp8_e4m3) << traits.name;
    EXPECT_EQ(traits.k_multiple, 16) << traits.name;
    EXPECT_TRUE(traits.is_operand) << traits.name;
    EXPECT_TRUE(traits.is_quantized_output()) << traits.name;
  }
  EXPECT_FALSE(format_traits(Format::fp8_tensor).has_scales());
  EXPECT_EQ(format_traits(Format::fp8_block).n_multiple, 128);
  EXPECT_EQ(format_traits(Format::fp8_row).scale_format, Format::fp32);
  EXPECT_EQ(format_traits(Format::fp8_block).scale_format, Format::fp32);
  EXPECT_EQ(format_traits(Format::fp8_block).stored_bits(), 8.25);
  EXPECT_EQ(format_traits(Format::fp8_block).stored_bits(OperandRole::weights), 8 + 32.0 / (128 * 128));
}

TEST(FormatTraits, WhatProductsReadAndWrite) {
  EXPECT_EQ(operand_formats, (std::array{Format::fp16, Format::bf16, Format::nvfp4, Format::fp8_tensor, Format::fp8_row,
                                         Format::fp8_block}));
  EXPECT_EQ(output_formats, (std::array{Format::fp32, Format::fp16, Format::bf16, Format::nvfp4, Format::fp8_tensor,
                                        Format::fp8_row, Format::fp8_block}));
  EXPECT_EQ(unscaled_output_formats, (std::array{Format::fp32, Format::fp16, Format::bf16}));
  for (const Format format : all_formats) {
    EXPECT_EQ(std::count(unscaled_output_formats.begin(), unscaled_output_formats.end(), format) == 1,
              format_traits(format).is_output && !format_traits(format).is_quantized_output());
  }
}

}  // namespace
}  // namespace thresher
