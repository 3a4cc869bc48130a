#include "machine/kernels/numbers.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "formats/numbers.hpp"
#include "machine/emulator/engine/random.hpp"
#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

class Numbers : public Primitive {
 protected:
  Array<u32> run(const KernelRef& kernel, const std::vector<u32>& a, const std::vector<u32>& b,
                 const std::vector<u32>& c, u32 results) {
    const auto in_a = input("a", a);
    const auto in_b = input("b", b);
    const auto in_c = input("c", c);
    auto out = output<u32>("out", a.size() * results);
    launch(blocks_of(128), kernel,
           NumberParams{{in_a.address}, {in_b.address}, {in_c.address}, {out.address}, static_cast<u32>(a.size())});
    fetch(out);
    return out;
  }
  static std::vector<u32> words(std::size_t count, u64 seed) {
    emulator::Random random(seed);
    std::vector<u32> values(count);
    for (u32& value : values) {
      value = static_cast<u32>(random.next());
    }
    return values;
  }
  static std::vector<u32> spread(float low, float high, std::size_t count) {
    std::vector<u32> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::bit_cast<u32>(low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1));
    }
    return values;
  }
};

bool both_nan_or_equal(u32 got, u32 expected) {
  return got == expected || (std::isnan(std::bit_cast<float>(got)) && std::isnan(std::bit_cast<float>(expected)));
}

TEST_F(Numbers, ApproximationsStayWithinTheirBounds) {
  const auto a = spread(-20.0F, 20.0F, 1001);
  const auto c = spread(3.0F, -3.0F, 1001);
  const auto out = run(RIG_KERNEL("numbers.hpp", floats), a, c, c, float_results);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float x = std::bit_cast<float>(a[i]);
    const float y = std::bit_cast<float>(c[i]);
    const auto got = [&](u32 r) { return std::bit_cast<float>(out.host[i * float_results + r]); };
    const auto near = [&](u32 r, double expected, double relative, double absolute) {
      EXPECT_NEAR(got(r), expected, std::abs(expected) * relative + absolute) << "result " << r << " of " << x;
    };
    near(0, std::exp2(static_cast<double>(x)), 0x1p-22, 0);
    if (x > 0) {
      near(1, std::log2(static_cast<double>(x)), 0x1p-22, 0x1p-22);
    }
    if (x != 0) {
      near(2, 1.0 / static_cast<double>(x), 0x1p-22, 0);
    }
    near(3, std::tanh(static_cast<double>(x)), 0x1p-10, 0);
    EXPECT_EQ(got(4), std::fma(x, y, y));
    EXPECT_EQ(got(5), std::fmax(x, y));
    EXPECT_EQ(got(6), std::fmin(x, y));
    near(7, std::exp(static_cast<double>(x)), 0x1p-21, 0);
    near(8, std::tanh(static_cast<double>(x)), 0x1p-21, 0);
    EXPECT_EQ(got(9), 1.0F);
  }
}

TEST_F(Numbers, SpecialValues) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto bits = [](float value) { return std::bit_cast<u32>(value); };
  const std::vector<u32> a = {bits(infinity), bits(-infinity), bits(nan), bits(-200.0F), bits(0.0F)};
  const std::vector<u32> b(5, bits(1.0F));
  const auto out = run(RIG_KERNEL("numbers.hpp", floats), a, b, b, float_results);
  const auto got = [&](u32 i, u32 r) { return std::bit_cast<float>(out.host[i * float_results + r]); };
  EXPECT_EQ(got(0, 0), infinity);
  EXPECT_EQ(got(1, 0), 0.0F);
  EXPECT_TRUE(std::isnan(got(2, 0)));
  EXPECT_EQ(got(3, 0), 0.0F);  // a subnormal result is flushed
  EXPECT_EQ(got(0, 2), 0.0F);
  EXPECT_EQ(got(4, 1), -infinity);
  EXPECT_EQ(got(0, 3), 1.0F);
  EXPECT_EQ(got(2, 5), 1.0F);  // the other operand of a NaN
  EXPECT_EQ(got(2, 6), 1.0F);
  EXPECT_EQ(got(0, 9), 0.0F);
  EXPECT_EQ(got(2, 9), 0.0F);
}

TEST_F(Numbers, ConversionsOfEveryPattern) {
  std::vector<u32> a(65536);
  std::vector<u32> b(65536);
  emulator::Random random(5);
  for (u32 i = 0; i < 65536; ++i) {
    b[i] = i;
    // Around every fp16 value, rounding both ways and on ties.
    const float base = formats::fp16_to_float(static_cast<std::uint16_t>(i));
    a[i] =
        std::isnan(base) ? static_cast<u32>(random.next()) : std::bit_cast<u32>(base) + (random.below(5) - 2) * 0x800U;
  }
  const auto out = run(RIG_KERNEL("numbers.hpp", narrow), a, b, b, narrow_results);
  for (u32 i = 0; i < 65536; ++i) {
    const float x = std::bit_cast<float>(a[i]);
    const u32* got = &out.host[std::size_t{i} * narrow_results];
    if (!std::isnan(x)) {
      ASSERT_EQ(got[0], formats::float_to_fp16(x)) << a[i];
      ASSERT_EQ(got[1], formats::float_to_bf16(x)) << a[i];
      ASSERT_EQ(got[2], formats::float_to_fp16(x) | static_cast<u32>(formats::float_to_fp16(-x)) << 16) << a[i];
      ASSERT_EQ(got[3], formats::float_to_bf16(-x) | static_cast<u32>(formats::float_to_bf16(x)) << 16) << a[i];
      ASSERT_EQ(got[7], formats::float_to_e4m3(x) | static_cast<u32>(formats::float_to_e4m3(-x)) << 8) << a[i];
    }
    ASSERT_TRUE(both_nan_or_equal(got[4], std::bit_cast<u32>(formats::fp16_to_float(static_cast<std::uint16_t>(i)))))
        << i;
    ASSERT_TRUE(both_nan_or_equal(got[5], std::bit_cast<u32>(formats::bf16_to_float(static_cast<std::uint16_t>(i)))))
        << i;
    for (u32 half = 0; half < 2; ++half) {
      const auto code = static_cast<std::uint8_t>(i >> (8 * half));
      const auto halves = static_cast<std::uint16_t>(got[6] >> (16 * half));
      const float value = formats::e4m3_to_float(code);
      ASSERT_TRUE(std::isnan(value) ? std::isnan(formats::fp16_to_float(halves))
                                    : formats::fp16_to_float(halves) == value);
    }
  }
}

/// The 16-bit pattern nearest to `exact`, ties to even, for patterns that `widen` orders as their magnitudes.
template <typename Widen>
bool is_nearest(std::uint16_t got, long double exact, Widen widen) {
  const auto distance = [&](std::uint16_t pattern) {
    return std::fabs(static_cast<long double>(widen(pattern)) - exact);
  };
  const auto above = static_cast<std::uint16_t>(got + 1);
  const auto below = static_cast<std::uint16_t>((got & 0x7FFFU) == 0 ? got ^ 0x8001U : got - 1);
  const long double own = distance(got);
  const auto worse = [&](std::uint16_t other) {
    return !std::isfinite(widen(other)) || own < distance(other) || (own == distance(other) && (got & 1U) == 0);
  };
  return worse(above) && worse(below);
}

TEST_F(Numbers, PackedArithmeticRoundsOnce) {
  emulator::Random random(6);
  std::vector<u32> operands[3];
  for (auto& list : operands) {
    for (int i = 0; i < 4000; ++i) {
      u32 word = 0;
      for (u32 half = 0; half < 2; ++half) {
        const u32 exponent = 8 + random.below(14);  // fp16: no overflow in a product, subnormal sums among them
        word |= (random.below(2) << 15 | exponent << 10 | random.below(1024)) << (16 * half);
      }
      list.push_back(word);
    }
  }
  const auto out = run(RIG_KERNEL("numbers.hpp", packed_words<Half>), operands[0], operands[1], operands[2], 3);
  const auto wide = [](std::uint16_t pattern) { return formats::fp16_to_float(pattern); };
  for (std::size_t i = 0; i < operands[0].size(); ++i) {
    for (u32 half = 0; half < 2; ++half) {
      const auto part = [&](u32 word) { return static_cast<std::uint16_t>(word >> (16 * half)); };
      const long double a = wide(part(operands[0][i]));
      const long double b = wide(part(operands[1][i]));
      const long double c = wide(part(operands[2][i]));
      if (std::fabs(a * b) + std::fabs(c) < 65000) {
        ASSERT_TRUE(is_nearest(part(out.host[i * 3]), a * b, wide));
        ASSERT_TRUE(is_nearest(part(out.host[i * 3 + 1]), a + b, wide));
        ASSERT_TRUE(is_nearest(part(out.host[i * 3 + 2]), a * b + c, wide));
      }
    }
  }
}

TEST_F(Numbers, PackedBrainFloats) {
  emulator::Random random(7);
  std::vector<u32> operands[3];
  for (auto& list : operands) {
    for (int i = 0; i < 2000; ++i) {
      u32 word = 0;
      for (u32 half = 0; half < 2; ++half) {
        word |= (random.below(2) << 15 | (117 + random.below(20)) << 7 | random.below(128)) << (16 * half);
      }
      list.push_back(word);
    }
  }
  const auto out = run(RIG_KERNEL("numbers.hpp", packed_words<BFloat16>), operands[0], operands[1], operands[2], 3);
  const auto wide = [](std::uint16_t pattern) { return formats::bf16_to_float(pattern); };
  for (std::size_t i = 0; i < operands[0].size(); ++i) {
    for (u32 half = 0; half < 2; ++half) {
      const auto part = [&](u32 word) { return static_cast<std::uint16_t>(word >> (16 * half)); };
      const long double a = wide(part(operands[0][i]));
      const long double b = wide(part(operands[1][i]));
      const long double c = wide(part(operands[2][i]));
      ASSERT_TRUE(is_nearest(part(out.host[i * 3]), a * b, wide));
      ASSERT_TRUE(is_nearest(part(out.host[i * 3 + 1]), a + b, wide));
      ASSERT_TRUE(is_nearest(part(out.host[i * 3 + 2]), a * b + c, wide));
    }
  }
}

TEST_F(Numbers, BitTricks) {
  const auto a = words(500, 8);
  const auto b = words(500, 9);
  const auto c = words(500, 10);
  const auto out = run(RIG_KERNEL("numbers.hpp", bit_tricks), a, b, c, 6);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const u32* got = &out.host[i * 6];
    u32 permuted = 0;
    for (u32 byte = 0; byte < 4; ++byte) {
      const u32 selector = c[i] >> (4 * byte) & 0xFU;
      const u32 source = (selector & 4U) != 0 ? b[i] : a[i];
      const u32 value = source >> (8 * (selector & 3U)) & 0xFFU;
      permuted |= ((selector & 8U) != 0 ? (value >= 128 ? 255U : 0U) : value) << (8 * byte);
    }
    ASSERT_EQ(got[0], permuted);
    ASSERT_EQ(got[1], (a[i] & b[i]) | (a[i] & c[i]) | (b[i] & c[i]));
    ASSERT_EQ(got[2], (a[i] & b[i]) ^ c[i]);
    const u32 shift = c[i] & 31U;
    ASSERT_EQ(got[3], shift == 0 ? b[i] : b[i] << shift | a[i] >> (32 - shift));
    ASSERT_EQ(got[4], a[i] * b[i] + c[i]);
    ASSERT_EQ(got[5], static_cast<u32>(std::popcount(a[i])));
  }
}

}  // namespace
}  // namespace thresher::machine::test
