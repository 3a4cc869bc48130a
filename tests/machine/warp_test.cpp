#include "machine/kernels/warp.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "formats/numbers.hpp"
#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

class Warp : public Primitive {
 protected:
  template <int count, bool transposed>
  void moves_tiles(const KernelRef& kernel) {
    std::vector<u16> values(64 * count);
    std::iota(values.begin(), values.end(), static_cast<u16>(100));
    const auto in = input("in", values);
    auto out = output<u32>("out", 32 * count);
    auto back = output<u16>("back", values.size());
    launch(blocks_of(32, 48 * 8 * count), kernel, MatrixParams{{in.address}, {out.address}, {back.address}});
    fetch(out);
    fetch(back);
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 t = 0; t < count; ++t) {
        const u32 row = lane / 4;
        const u32 column = lane % 4 * 2;
        const u32 low = transposed ? values[(t * 8 + column) * 8 + row] : values[(t * 8 + row) * 8 + column];
        const u32 high = transposed ? values[(t * 8 + column + 1) * 8 + row] : values[(t * 8 + row) * 8 + column + 1];
        ASSERT_EQ(out.host[lane * count + t], low | high << 16) << lane << " " << t;
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(back.host[i], values[i] ^ 1U) << i;
    }
  }

  template <typename Element>
  void multiplies(const KernelRef& kernel) {
    const auto bits = [](int value) {
      return std::is_same_v<Element, Half> ? formats::float_to_fp16(static_cast<float>(value))
                                           : formats::float_to_bf16(static_cast<float>(value));
    };
    std::vector<int> a(256);
    std::vector<int> b(128);
    for (int i = 0; i < 256; ++i) {
      a[static_cast<std::size_t>(i)] = i * 7 % 23 - 11;
      b[static_cast<std::size_t>(i / 2)] = i * 5 % 19 - 9;
    }
    std::vector<u16> a_bits(256);
    std::vector<u16> b_bits(128);
    std::transform(a.begin(), a.end(), a_bits.begin(), bits);
    std::transform(b.begin(), b.end(), b_bits.begin(), bits);
    std::vector<float> start(128);
    std::iota(start.begin(), start.end(), -50.0F);
    const auto left = input("a", a_bits);
    const auto right = input("b", b_bits);
    auto d = input_output<float>("d", start);
    auto words = output<u32>("words", 32);
    launch(blocks_of(32), kernel, WarpProductParams{{left.address}, {right.address}, {d.address}, {words.address}});
    fetch(d);
    fetch(words);
    for (std::size_t i = 0; i < 128; ++i) {
      float expected = start[i];
      for (std::size_t k = 0; k < 16; ++k) {
        expected += static_cast<float>(a[i / 8 * 16 + k] * b[k * 8 + i % 8]);
      }
      ASSERT_EQ(d.host[i], expected) << i;
    }
    for (u32 lane = 0; lane < 32; ++lane) {
      const u32 row = lane % 4 * 2;
      ASSERT_EQ(words.host[lane], b_bits[row * 8 + lane / 4] | static_cast<u32>(b_bits[row * 8 + 8 + lane / 4]) << 16);
    }
  }
};

TEST_F(Warp, ExchangesWords) {
  for (const u32 argument : {0U, 1U, 5U, 16U, 31U}) {
    std::vector<u32> values(64);
    for (u32 i = 0; i < 64; ++i) {
      values[i] = i * i % 77;
    }
    const auto in = input("in " + std::to_string(argument), values);
    auto out = output<u32>("out " + std::to_string(argument), 64 * 14);
    launch(blocks_of(64), RIG_KERNEL("warp.hpp", exchanges), WarpParams{{in.address}, {out.address}, argument});
    fetch(out);
    // Combined in steps of 16, 8, 4, 2, 1 by an operation that tells its operands apart.
    std::vector<u32> combined = values;
    for (u32 distance = 16; distance > 0; distance /= 2) {
      const std::vector<u32> before = combined;
      for (u32 thread = 0; thread < 64; ++thread) {
        combined[thread] = before[thread] * 3 + before[thread ^ distance];
      }
    }
    for (u32 thread = 0; thread < 64; ++thread) {
      const u32 base = thread / 32 * 32;
      const u32 lane = thread % 32;
      u32 odd = 0;
      bool any = false;
      for (u32 i = 0; i < 32; ++i) {
        odd |= (values[base + i] & 1U) << i;
        any = any || values[base + i] == argument;
      }
      const std::vector<u32> expected = {values[base + argument],
                                         values[base + (lane ^ argument)],
                                         lane >= argument ? values[thread - argument] : values[thread],
                                         values[base + 31 - lane],
                                         values[base + (lane ^ argument)],
                                         values[base + (lane + argument) % 32],
                                         odd,
                                         any ? 1U : 0U,
                                         1,
                                         lane == 0 ? 1U : 0U,
                                         lane < 16 ? 1U : 0U,
                                         lane == 0 ? 1U : 0U,
                                         *std::max_element(values.begin() + base, values.begin() + base + 32),
                                         combined[thread]};
      const std::vector<u32> got(out.host.begin() + thread * 14, out.host.begin() + thread * 14 + 14);
      ASSERT_EQ(got, expected) << "thread " << thread << ", argument " << argument;
    }
  }
}

TEST_F(Warp, MovesTiles) { moves_tiles<1, false>(RIG_KERNEL("warp.hpp", tiles<1, false>)); }
TEST_F(Warp, MovesTwoTiles) { moves_tiles<2, false>(RIG_KERNEL("warp.hpp", tiles<2, false>)); }
TEST_F(Warp, MovesFourTiles) { moves_tiles<4, false>(RIG_KERNEL("warp.hpp", tiles<4, false>)); }
TEST_F(Warp, MovesATransposedTile) { moves_tiles<1, true>(RIG_KERNEL("warp.hpp", tiles<1, true>)); }
TEST_F(Warp, MovesFourTransposedTiles) { moves_tiles<4, true>(RIG_KERNEL("warp.hpp", tiles<4, true>)); }

/// Whole numbers, whose sums are exact in every order.
TEST_F(Warp, MultipliesHalves) { multiplies<Half>(RIG_KERNEL("warp.hpp", warp_product<Half>)); }
TEST_F(Warp, MultipliesBFloat16) { multiplies<BFloat16>(RIG_KERNEL("warp.hpp", warp_product<BFloat16>)); }

TEST_F(Warp, NamedBarriersAlternate) {
  constexpr u32 rounds = 7;
  auto out = output<u32>("out", rounds);
  launch(blocks_of(192, 16), RIG_KERNEL("warp.hpp", turns), TurnParams{{out.address}, rounds});
  fetch(out);
  u32 value = 1;
  for (u32 round = 0; round < rounds; ++round) {
    value = (value + 1) * 2;
    EXPECT_EQ(out.host[round], value);
  }
}

TEST_F(Warp, RegistersAreHandedOver) {
  auto out = output<u32>("out", 640);
  LaunchShape shape = blocks_of(640);
  shape.registers_at_launch = 96;
  launch(shape, RIG_KERNEL("warp.hpp", reallocation), RegisterParams{{out.address}});
  fetch(out);
  EXPECT_EQ(out.host[639], 1917U);
}

}  // namespace
}  // namespace thresher::machine::test
