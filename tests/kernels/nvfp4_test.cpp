// The packed NVFP4 layout and its dequantisation, on the host's body of the vocabulary: every code with every scale.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/numbers.hpp"
#include "kernels/nvfp4/choose.hpp"
#include "kernels/nvfp4/dequantize.hpp"
#include "kernels/nvfp4/pack.hpp"
#include "kernels/nvfp4/program.hpp"

namespace thresher::kernels::nvfp4 {
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
  const machine::Vector<u32, 2> bytes{{gate_scale | up_scale << 8, 0}};
  const machine::wgmma::Fragment fragment =
      dequantize<Element>(word_of(pair, code, code ^ 9U), scales<Element>(bytes, 0));
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
  for (u32 scale = 0; scale < 128; ++scale) {
    for (u32 code = 0; code < 16; ++code) {
      for (u32 pair = 0; pair < 4; ++pair) {
        expect_exact<Half>(pair, code, scale, 127 - scale);
        expect_exact<BFloat16>(pair, code, scale, 127 - scale);
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

TEST(ChoosePackedNvfp4, SharedMemoryAndRegistersFit) {
  for (const int m : {1, 8, 9, 16, 17, 40, 64, 65, 128, 129, 256, 512, 4096}) {
    for (const Choice& choice : rank(m, 4096, 7168, 132)) {
      const Config& c = choice.config;
      EXPECT_LE(shared_bytes(c) * c.blocks_resident, 227 * 1024) << choice.why;
      if (c.math_registers > 0) {
        EXPECT_LE(c.math_registers * c.math_warpgroups * 128 + c.loader_registers * 128, 65536) << choice.why;
      }
    }
  }
}

TEST(ChoosePackedNvfp4, FewTokensTakeNarrowTilesAndShortGridsSplitK) {
  EXPECT_EQ(rank(1, 14336, 4096, 132).front().config.block_tokens, 8);
  EXPECT_EQ(rank(64, 14336, 4096, 132).front().config.block_tokens, 64);
  const Config prefill = rank(256, 4096, 7168, 132).front().config;
  EXPECT_EQ(prefill.block_tokens, 256);
  EXPECT_EQ(prefill.split_k, 2);
}

}  // namespace
}  // namespace thresher::kernels::nvfp4
