// The packed NVFP4 layout and its dequantisation, on the host's body of the vocabulary: every code with every scale.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/numbers.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/wgmma_dequant/device/operand.hpp"
#include "strategies/gemm/wgmma_dequant/device/pack.hpp"
#include "strategies/gemm/wgmma_dequant/device/quantize_tokens.hpp"
#include "strategies/gemm/wgmma_dequant/kernel.hpp"
#include "strategies/gemm/wgmma_dequant/tiles.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {
namespace {

using machine::BFloat16;
using machine::Half;

float value(Half element) { return formats::fp16_to_float(element.bits); }
float value(BFloat16 element) { return formats::bf16_to_float(element.bits); }

/// Codes first and second as pair p of an otherwise full word.
u32 word_of(u32 pair, u32 first, u32 second) {
  u32 word = 0;
  for (u32 p = 0; p < 4; ++p) {
    const u32 low = p == pair ? first : 0xF;
    const u32 high = p == pair ? second : 0xF;
    word |= place(low, p) | static_cast<u32>(place(high, p)) << 16;
  }
  return word;
}

template <class Element>
void expect_exact(u32 pair, u32 code, u32 gate_scale, u32 up_scale) {
  const u32 step = code % steps;
  machine::Vector<u32, 2> bytes{{0x55555555U, 0x55555555U}};
  const u32 stored = u32{stored_scale(gate_scale)} | u32{stored_scale(up_scale)} << 8;
  bytes.at[step / 2] = step % 2 == 0 ? 0x55550000U | stored : stored << 16 | 0x5555U;
  const machine::wgmma::Fragment fragment =
      dequantize<Element>(word_of(pair, code, code ^ 9U), scales<Element>(bytes, step));
  const float scale = formats::e4m3_to_float(static_cast<std::uint8_t>(pair % 2 == 0 ? gate_scale : up_scale));
  for (u32 half = 0; half < 2; ++half) {
    const Element element{static_cast<machine::u16>(fragment.word[pair] >> (16 * half))};
    const float expected = formats::e2m1_to_float(static_cast<std::uint8_t>(half == 0 ? code : code ^ 9U)) * scale;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value(element)));
    } else {
      ASSERT_EQ(value(element) / exact_result_scale, expected)
          << "pair " << pair << " code " << code << " scale " << scale;
    }
  }
}

TEST(PackedNvfp4, EveryCodeTimesEveryScaleIsExactInBothFormats) {
  for (u32 scale = 1; scale < 128; ++scale) {
    for (u32 code = 0; code < 16; ++code) {
      for (u32 pair = 0; pair < 4; ++pair) {
        expect_exact<Half>(pair, code, scale, 128 - scale);
        expect_exact<BFloat16>(pair, code, scale, 128 - scale);
      }
    }
  }
}

TEST(PackedNvfp4, PlacesUseEveryBitOnce) {
  u32 used = 0;
  for (u32 pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(used & place(0xF, pair), 0U);
    used |= place(0xF, pair);
  }
  EXPECT_EQ(used, 0xFFFFU);
}

TEST(PackedNvfp4, ABlockHoldsEachOfItsWeightsOnce) {
  std::set<std::tuple<bool, u32, u32>> seen;
  for (u32 thread = 0; thread < threads; ++thread) {
    for (u32 step = 0; step < steps; ++step) {
      for (u32 pair = 0; pair < 4; ++pair) {
        const Source from = source(thread, step, pair);
        EXPECT_TRUE(from.output < block_outputs && from.column + 1 < block_k && from.column % 2 == 0);
        EXPECT_TRUE(seen.insert({from.up, from.output, from.column}).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), 2U * block_outputs * block_k / 2);
}

TEST(PackedNvfp4, TokensWidenToTheirExactValues) {
  for (u32 code = 0; code < 256; ++code) {
    const u32 scale = machine::packed::broadcast<0>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code)));
    for (u32 first = 0; first < 16; ++first) {
      const machine::Vector<u32, 2> four = widen_four(first | (15U - first) << 4, scale);
      const float expected = formats::e2m1_to_float(static_cast<std::uint8_t>(first)) *
                             formats::e4m3_to_float(static_cast<std::uint8_t>(code));
      const float got = formats::fp16_to_float(static_cast<std::uint16_t>(four.at[0]));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(got));
      } else {
        ASSERT_EQ(got, expected);
      }
    }
  }
}

/// e4m3 of code × scale × 2^exponent, rounded once.
std::uint8_t folded(u32 code, u32 scale, int exponent) {
  return formats::float_to_e4m3(std::ldexp(formats::e2m1_to_float(static_cast<std::uint8_t>(code)) *
                                               formats::e4m3_to_float(static_cast<std::uint8_t>(scale)),
                                           exponent));
}

/// Every byte of the word's eight results, in order.
std::array<std::uint8_t, 8> fold_bytes(u32 word, const fast::Products& products) {
  const fast::WordPair pair = fast::to_e4m3(word, products);
  std::array<std::uint8_t, 8> bytes{};
  for (u32 i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>((i < 4 ? pair.first : pair.second) >> (i % 4 * 8));
  }
  return bytes;
}

TEST(FastNvfp4, EveryCodeTimesEveryScaleInReachIsRoundedOnce) {
  for (u32 scale = fast::smallest_scale_code; scale <= fast::largest_scale_code; ++scale) {
    const u32 scales = fast::scale_byte(scale) | fast::scale_byte(fast::largest_scale_code) << 8 |
                       fast::scale_byte(fast::smallest_scale_code) << 16 | fast::scale_byte(scale) << 24;
    for (u32 code = 0; code < 16; ++code) {
      for (u32 at = 0; at < 8; ++at) {
        u32 word = 0;
        for (u32 i = 0; i < 8; ++i) {
          word |= fast::place(i == at ? code : 0xF, i);
        }
        const std::array<std::uint8_t, 8> low = fold_bytes(word, fast::products<0>(scales));
        const std::array<std::uint8_t, 8> high = fold_bytes(word, fast::products<3>(scales));
        for (u32 i = 0; i < 8; ++i) {
          const std::uint8_t expected = folded(i == at ? code : 0xF, scale, 0);
          ASSERT_EQ(low[i], expected) << "code " << code << " scale code " << scale << " at " << at;
          ASSERT_EQ(high[i], expected) << "code " << code << " scale code " << scale << " at " << at;
        }
      }
    }
  }
}

TEST(FastNvfp4, ARowsLargestScaleComesToTheTopOfTheRange) {
  for (u32 code = 1; code < 127; ++code) {
    const int moved = fast::extended_code(code) + 8 * fast::row_exponent(code);
    EXPECT_GT(moved, static_cast<int>(fast::largest_scale_code) - 8) << code;
    EXPECT_LE(moved, static_cast<int>(fast::largest_scale_code)) << code;
    const float scale = std::ldexp(formats::e4m3_to_float(static_cast<std::uint8_t>(code)), fast::row_exponent(code));
    EXPECT_EQ(formats::e4m3_to_float(static_cast<std::uint8_t>(moved)), scale) << code;
    EXPECT_LE(6 * scale, formats::e4m3_max) << code;
  }
}

TEST(FastNvfp4, EveryScaleBesideEveryLargestOneKeepsItsPromise) {
  for (u32 largest = 1; largest < 127; ++largest) {
    const int exponent = fast::row_exponent(largest);
    for (u32 scale = 0; scale <= largest; ++scale) {
      const fast::PackedScale packed = fast::packed_scale(scale, exponent);
      const u32 table = packed.byte | packed.byte << 16;
      for (u32 code = 0; code < 16; ++code) {
        const u32 word = fast::place(fast::packed_code(code, packed), 0);
        const float got = formats::e4m3_to_float(fold_bytes(word, fast::products<0>(table))[0]);
        const float exact = std::ldexp(formats::e2m1_to_float(static_cast<std::uint8_t>(code)) *
                                           formats::e4m3_to_float(static_cast<std::uint8_t>(scale)),
                                       exponent);
        if (packed.rescale == 1.0F) {
          ASSERT_EQ(got, formats::e4m3_to_float(formats::float_to_e4m3(exact)))
              << code << " " << scale << " " << largest;
        } else {
          // Quantised again: half a step of the grid of 2^-6, 2^-5, … 6·2^-5.
          ASSERT_LE(std::abs(got - exact), std::max(0x1p-7F, std::abs(exact) / 5)) << code << " " << scale;
          ASSERT_LT(std::abs(exact), 6 * 0x1p-5F);
        }
      }
    }
  }
}

TEST(FastNvfp4, ABlockHoldsEachOfItsWeightsOnceAndTokensLieAlike) {
  std::set<std::tuple<bool, u32, u32>> seen;
  for (u32 thread = 0; thread < threads; ++thread) {
    for (u32 half = 0; half < fast::halves; ++half) {
      for (u32 word = 0; word < 4; ++word) {
        const fast::Source from = fast::source(thread, half, word);
        for (u32 i = 0; i < 8; ++i) {
          EXPECT_TRUE(seen.insert({from.up, from.output, from.column + i}).second);
          // Fragment word i/4 of k-step 2·half + word/2 covers bytes 32·step + 16·(i/4) + 4·(lane%4) of a row of
          // tokens.
          const u32 in_row = (2 * half + word / 2) * 32 + i / 4 * 16 + thread % 4 * 4 + i % 4;
          const u32 column = from.column + i;
          EXPECT_EQ(fast::token_byte(column / 16, column % 16 / 4) + column % 4, in_row);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 2U * block_outputs * fast::block_k);
}

TEST(ChoosePackedNvfp4, SharedMemoryAndRegistersFit) {
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    for (const int m : {1, 8, 9, 16, 17, 40, 64, 65, 128, 129, 256, 512, 4096}) {
      const DualGemmProblem problem{.m = m, .n = 64, .k = 64, .a = Format::fp16, .b = Format::nvfp4};
      for (const Config& c : dense_candidates(numerics, m)) {
        const std::string text = knob_table().knobs(c).text();
        EXPECT_LE(pipeline::shared_bytes(shape_of(c)) * c.blocks_resident, 227 * 1024) << text;
        if (c.math_registers > 0) {
          EXPECT_LE(c.math_registers * c.math_warpgroups * 128 + c.loader_registers * 128, 65536) << text;
        }
        EXPECT_EQ(packed_strategy().infeasible_reasons(problem, knob_table().knobs(c), device_spec("H200")),
                  std::vector<std::string>{})
            << text;
      }
    }
  }
}

}  // namespace
}  // namespace thresher::strategies::gemm::wgmma_dequant
