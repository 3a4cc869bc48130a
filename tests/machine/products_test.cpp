#include "machine/kernels/products.hpp"

#include <cstring>
#include <type_traits>

#include "formats/numbers.hpp"
#include "machine/emulator/engine/random.hpp"
#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

/// An operand tile, extent rows × depth of k, and how it lies in shared memory.
struct Tile {
  u32 extent;
  u32 depth;
  u32 element_bytes;
  Swizzle swizzle;
  Major major;

  [[nodiscard]] u32 span() const { return swizzle_span_bytes(swizzle); }
  [[nodiscard]] bool along_k() const { return major == Major::k; }

  /// Distances as machine/wgmma.hpp defines them, for a tile laid out densely.
  [[nodiscard]] u32 leading() const {
    if (swizzle == Swizzle::none) {
      return 128;
    }
    return along_k() ? 0 : 8 * span() * (depth / 8);
  }
  [[nodiscard]] u32 stride() const {
    if (swizzle == Swizzle::none) {
      return 128 * 2;
    }
    return 8 * span();
  }
  [[nodiscard]] u32 bytes() const {
    const u32 row_bytes = depth * element_bytes;
    if (swizzle == Swizzle::none) {
      return extent * row_bytes;
    }
    return along_k() ? extent * span() : (extent * element_bytes + span() - 1) / span() * span() * depth;
  }
  [[nodiscard]] u32 offset(u32 row, u32 k) const {
    const u32 unit = 16 / element_bytes;
    u32 linear = 0;
    if (swizzle == Swizzle::none) {
      // Cores of 8 × 16 bytes; two along k make a group of 8 rows (k-major), two along k follow a group of rows (mn).
      linear = along_k() ? row / 8 * 256 + k / unit * 128 + row % 8 * 16 + k % unit * element_bytes
                         : row / unit * 256 + k / 8 * 128 + k % 8 * 16 + row % unit * element_bytes;
    } else if (along_k()) {
      linear = row * span() + k * element_bytes;
    } else {
      const u32 byte = row * element_bytes;
      linear = byte / span() * leading() + k * span() + byte % span();
    }
    const u32 mask = (1U << static_cast<u32>(swizzle)) - 1U;
    return linear ^ ((linear >> 7 & mask) << 4);
  }
};

template <typename Element>
constexpr u32 depth = sizeof(Element) == 1 ? 32 : 16;

template <typename Element>
u32 encode(float value) {
  if constexpr (sizeof(Element) == 1) {
    return formats::float_to_e4m3(value);
  } else {
    return std::is_same_v<Element, Half> ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
  }
}

class Products : public Primitive {
 protected:
  template <typename Element>
  std::vector<u8> image(const Tile& tile, const std::vector<float>& values) {
    std::vector<u8> bytes(tile.bytes());
    for (u32 row = 0; row < tile.extent; ++row) {
      for (u32 k = 0; k < tile.depth; ++k) {
        const u32 code = encode<Element>(values[row * tile.depth + k]);
        std::memcpy(bytes.data() + tile.offset(row, k), &code, tile.element_bytes);
      }
    }
    return bytes;
  }

  static std::vector<float> numbers(std::size_t count, u64 seed) {
    emulator::Random random(seed);
    std::vector<float> values(count);
    for (float& value : values) {
      value = static_cast<float>(random.below(15)) - 7.0F;
    }
    return values;
  }

  /// Small integers: every order of additions gives the same bits.
  template <typename Element, int columns, Source source, Swizzle a_swizzle, Major a_major, Swizzle b_swizzle,
            Major b_major>
  void multiplies(const KernelRef& kernel) {
    SCOPED_TRACE(kernel.expression);
    constexpr u32 k = depth<Element>;
    const Tile a_tile{64, k, sizeof(Element), a_swizzle, a_major};
    const Tile b_tile{columns, k, sizeof(Element), b_swizzle, b_major};
    const auto a_values = numbers(64 * k, columns + 1);
    const auto b_values = numbers(columns * k, columns + 2);
    const std::string tag = kernel.expression;
    const auto a = input("a " + tag, image<Element>(a_tile, a_values));
    const auto b = input("b " + tag, image<Element>(b_tile, b_values));
    const auto start = input("start " + tag, numbers(64 * columns, 3));
    std::vector<u32> words(512);
    for (u32 thread = 0; thread < 128; ++thread) {
      constexpr u32 each = 4 / sizeof(Element);
      for (u32 i = 0; i < 4 * each; ++i) {
        const u32 row = thread / 32 * 16 + thread % 32 / 4 + i / each % 2 * 8;
        const u32 column = thread % 4 * each + i % each + i / each / 2 * (k / 2);
        words[thread * 4 + i / each] |= encode<Element>(a_values[row * k + column]) << (i % each * 8 * sizeof(Element));
      }
    }
    const auto fragments = input("words " + tag, words);
    auto d = output<float>("d " + tag, 64 * columns);
    constexpr u32 rounds = 3;
    const ProductParams params{{a.address},     {b.address},      {fragments.address}, {start.address},
                               {d.address},     a_tile.bytes(),   b_tile.bytes(),      a_tile.leading(),
                               a_tile.stride(), b_tile.leading(), b_tile.stride(),     rounds};
    launch(blocks_of(128, (a_tile.bytes() + 1023) / 1024 * 1024 + b_tile.bytes()), kernel, params);
    fetch(d);
    for (u32 row = 0; row < 64; ++row) {
      for (u32 column = 0; column < columns; ++column) {
        float sum = start.host[row * columns + column];
        for (u32 i = 0; i < k; ++i) {
          sum += rounds * a_values[row * k + i] * b_values[column * k + i];
        }
        ASSERT_EQ(d.host[row * columns + column], sum) << row << ", " << column;
      }
    }
  }
};

#define MULTIPLIES(...) multiplies<__VA_ARGS__>(RIG_KERNEL("products.hpp", product<__VA_ARGS__>))

TEST_F(Products, OfEveryElement) {
  MULTIPLIES(Half, 64, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(BFloat16, 64, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(E4M3, 64, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
}
TEST_F(Products, OfManyWidths) {
  MULTIPLIES(Half, 8, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(BFloat16, 24, Source::shared, Swizzle::b64, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(Half, 104, Source::shared, Swizzle::b128, Major::k, Swizzle::b32, Major::k);
  MULTIPLIES(E4M3, 200, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(Half, 256, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::k);
}
TEST_F(Products, OfEverySwizzleAlongK) {
  MULTIPLIES(Half, 32, Source::shared, Swizzle::none, Major::k, Swizzle::none, Major::k);
  MULTIPLIES(Half, 32, Source::shared, Swizzle::b32, Major::k, Swizzle::b64, Major::k);
  MULTIPLIES(E4M3, 32, Source::shared, Swizzle::b64, Major::k, Swizzle::none, Major::k);
}
TEST_F(Products, OfTransposedOperands) {
  MULTIPLIES(Half, 64, Source::shared, Swizzle::b128, Major::k, Swizzle::b128, Major::mn);
  MULTIPLIES(BFloat16, 128, Source::shared, Swizzle::b128, Major::mn, Swizzle::b128, Major::mn);
  MULTIPLIES(Half, 96, Source::shared, Swizzle::b64, Major::mn, Swizzle::b64, Major::mn);
  MULTIPLIES(Half, 48, Source::shared, Swizzle::b32, Major::mn, Swizzle::b32, Major::mn);
}
TEST_F(Products, WithAFromRegisters) {
  MULTIPLIES(Half, 40, Source::registers, Swizzle::none, Major::k, Swizzle::b128, Major::k);
  MULTIPLIES(BFloat16, 128, Source::registers, Swizzle::none, Major::k, Swizzle::b128, Major::mn);
  MULTIPLIES(E4M3, 16, Source::registers, Swizzle::none, Major::k, Swizzle::b64, Major::k);
}

}  // namespace
}  // namespace thresher::machine::test
