// Every pattern of every format, on every instruction set.
#include "cpu/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "cpu/every_target.hpp"
#include "formats/numbers.hpp"

namespace thresher::cpu {
namespace {

using test::on_every_target;

constexpr std::size_t patterns = 65536;

/// Equal bits, or NaN both.
bool same(float left, float right) {
  return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right) ||
         (std::isnan(left) && std::isnan(right));
}

std::vector<std::uint16_t> every_pattern() {
  std::vector<std::uint16_t> all(patterns);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  return all;
}

/// For each scale code one group with every e2m1 code.
struct EveryProduct {
  std::vector<std::uint8_t> packed;
  std::vector<std::uint8_t> scales;

  EveryProduct() {
    for (int scale = 0; scale < 256; ++scale) {
      scales.push_back(static_cast<std::uint8_t>(scale));
      for (int pair = 0; pair < 8; ++pair) {
        packed.push_back(static_cast<std::uint8_t>((2 * pair) | (2 * pair + 1) << 4));
      }
    }
  }
  static float at(std::size_t i) { return formats::e2m1_values[i % 16] * formats::e4m3_values[i / 16]; }
};

TEST(CpuRows, NvfpProductsAreExactForEveryCodeAndScale) {
  on_every_target([] {
    const EveryProduct every;
    constexpr std::int64_t count = 256 * 16;
    std::vector<std::uint16_t> bf16(count);
    std::vector<float> float32(count);
    nvfp4_row_to_bf16(every.packed.data(), every.scales.data(), count, bf16.data());
    nvfp4_row_to_float32(every.packed.data(), every.scales.data(), count, float32.data());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(same(formats::bf16_to_float(bf16[i]), EveryProduct::at(i)))
          << "scale " << i / 16 << " code " << i % 16;
      ASSERT_TRUE(same(float32[i], EveryProduct::at(i))) << "scale " << i / 16 << " code " << i % 16;
    }
  });
}

TEST(CpuRows, AnyNumberOfGroupsStaysWithinItsOutput) {
  on_every_target([] {
    const EveryProduct every;
    for (std::size_t groups = 0; groups <= 9; ++groups) {
      const std::size_t count = groups * 16;
      std::vector<std::uint16_t> bf16(count + 8, 0x1234);
      nvfp4_row_to_bf16(every.packed.data() + 400, every.scales.data() + 50, static_cast<std::int64_t>(count),
                        bf16.data());
      for (std::size_t i = 0; i < bf16.size(); ++i) {
        const float expected = i < count ? EveryProduct::at(50 * 16 + i) : formats::bf16_to_float(0x1234);
        ASSERT_EQ(formats::bf16_to_float(bf16[i]), expected);
      }
    }
  });
}

TEST(CpuRows, HighAndLowAreEveryFp16) {
  on_every_target([] {
    const std::vector<std::uint16_t> in = every_pattern();
    std::vector<std::uint16_t> high(patterns);
    std::vector<std::uint16_t> low(patterns);
    std::vector<float> float32(patterns);
    RangeLanes lanes;
    fp16_row_to_bf16(in.data(), patterns, high.data(), low.data(), lanes);
    fp16_row_to_float32(in.data(), patterns, float32.data());
    for (std::size_t i = 0; i < patterns; ++i) {
      const float expected = formats::fp16_to_float(in[i]);
      ASSERT_TRUE(same(float32[i], expected)) << i;
      if (std::isfinite(expected)) {
        ASSERT_EQ(formats::bf16_to_float(high[i]) + formats::bf16_to_float(low[i]), expected) << i;
      } else {
        ASSERT_TRUE(same(formats::bf16_to_float(high[i]), expected)) << i;
        ASSERT_EQ(low[i], 0) << i;
      }
    }
  });
}

bool met_infinity(const RangeLanes& lanes) {
  return std::any_of(lanes.infinite.begin(), lanes.infinite.end(), [](std::uint16_t met) { return met != 0; });
}

int smallest_magnitude(const RangeLanes& lanes) {
  return static_cast<std::uint16_t>(*std::min_element(lanes.smallest.begin(), lanes.smallest.end()) + 1);
}

TEST(CpuRows, AnInfinityIsMetWhereverItStands) {
  on_every_target([] {
    for (const std::size_t count : {1U, 7U, 16U, 40U, 67U}) {
      for (std::size_t place = 0; place < count; ++place) {
        std::vector<std::uint16_t> row(count, 0x3C00);
        std::vector<std::uint16_t> high(count);
        std::vector<std::uint16_t> low(count);
        row[place] = 0x7E00;  // NaN in fp16, a number in bf16
        RangeLanes none;
        fp16_row_to_bf16(row.data(), static_cast<std::int64_t>(count), high.data(), low.data(), none);
        bf16_row_to_bf16(row.data(), static_cast<std::int64_t>(count), high.data(), none);
        EXPECT_FALSE(met_infinity(none));
        RangeLanes in_fp16;
        row[place] = 0xFC00;
        fp16_row_to_bf16(row.data(), static_cast<std::int64_t>(count), high.data(), low.data(), in_fp16);
        EXPECT_TRUE(met_infinity(in_fp16)) << place << " of " << count;
        RangeLanes in_bf16;
        row[place] = 0x7F80;
        bf16_row_to_bf16(row.data(), static_cast<std::int64_t>(count), high.data(), in_bf16);
        EXPECT_TRUE(met_infinity(in_bf16)) << place << " of " << count;
      }
    }
  });
}

TEST(CpuRows, TheSmallestMagnitudeIsMetWhereverItStands) {
  on_every_target([] {
    for (const std::size_t count : {1U, 7U, 16U, 40U, 67U}) {
      for (std::size_t place = 0; place < count; ++place) {
        std::vector<std::uint16_t> row(count, 0x4321);
        std::vector<std::uint16_t> out(count);
        row[(place + 1) % count] = 0x8000;  // a zero does not count
        row[place] = 0x8042;
        RangeLanes lanes;
        bf16_row_to_bf16(row.data(), static_cast<std::int64_t>(count), out.data(), lanes);
        EXPECT_EQ(smallest_magnitude(lanes), 0x42) << place << " of " << count;
        EXPECT_EQ(out, row);
      }
    }
  });
}

TEST(CpuRows, EveryBf16WidensExactly) {
  on_every_target([] {
    const std::vector<std::uint16_t> in = every_pattern();
    std::vector<float> float32(patterns);
    bf16_row_to_float32(in.data(), patterns, float32.data());
    for (std::size_t i = 0; i < patterns; ++i) {
      ASSERT_TRUE(same(float32[i], formats::bf16_to_float(in[i]))) << i;
    }
  });
}

}  // namespace
}  // namespace thresher::cpu
