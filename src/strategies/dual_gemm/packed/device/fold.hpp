#pragma once
/// One packed word of the fast path to two fragment words: 8 weights as e4m3(value·scale), one rounding each.
#include "machine/numbers.hpp"
#include "strategies/dual_gemm/packed/device/fast_layout.hpp"

namespace thresher::strategies::dual_gemm::packed::fast {

/// The products of one scale with the eight magnitudes of e2m1, a byte each.
struct Products {
  u32 low;   ///< of 0, 0.5, 1, 1.5
  u32 high;  ///< of 2, 3, 4, 6
};

/// Byte `at` of a thread's four bytes of scales. With code c and rounding bit r, so byte x = c + 128r, the products are
/// bytes of c + r·… + constants: multiply-adds, which leave the integer units to `fold`.
template <u32 at>
TH_DEVICE Products products(u32 scales) {
  // Selector 4 is a zero byte.
  const u32 x = machine::bits::permute(scales, 0, 0x4440U | at);
  const u32 r = x >> 7;
  constexpr u32 c_in_low = 0x01010100U;
  constexpr u32 r_in_low = 0x01000000U - 128 * c_in_low;
  constexpr u32 c_in_high = 0x01010101U;
  constexpr u32 r_in_high = 0x01000100U - 128 * c_in_high;
  return {x * c_in_low + (r * r_in_low + 0x03FFF800U), x * c_in_high + (r * r_in_high + 0x14100C08U)};
}

struct WordPair {
  u32 first;   ///< operand half 0
  u32 second;  ///< operand half 1
};

TH_DEVICE WordPair fold(u32 word, const Products& products) {
  using machine::bits::permute;
  const u32 selectors = word & 0x77777777U;
  return {permute(products.low, products.high, selectors) | (word & 0x80808080U),
          permute(products.low, products.high, selectors >> 16) | (word << 4 & 0x80808080U)};
}

/// Nearest e2m1 magnitude, ties to even codes; x is not negative.
TH_DEVICE constexpr u32 nearest_magnitude(float x) {
  return (x > 0.25F ? 1U : 0U) + (x >= 0.75F ? 1U : 0U) + (x > 1.25F ? 1U : 0U) + (x >= 1.75F ? 1U : 0U) +
         (x > 2.5F ? 1U : 0U) + (x >= 3.5F ? 1U : 0U) + (x > 5.0F ? 1U : 0U);
}

/// A scale's byte: code, and whether 1.5 times it lies five codes above.
TH_DEVICE constexpr u32 scale_byte(u32 code) {
  const u32 mantissa = code % 8;
  return code | (mantissa >= 1 && mantissa <= 5 ? 0x80U : 0U);
}

/// 2^e, −126 ≤ e ≤ 127.
TH_DEVICE float power_of_two(int e) { return machine::convert::bits_float(static_cast<u32>(127 + e) << 23); }

/// How a group of 16 is packed: its scale's byte, and what its codes' values are multiplied by before they are rounded
/// again; 1 for codes that stay as they are.
struct PackedScale {
  u32 byte;
  float rescale;
};

/// `code` without its sign and not NaN, in a row multiplied by 2^exponent.
TH_DEVICE PackedScale packed_scale(u32 code, int exponent) {
  if (code == 0) {
    return {scale_byte(smallest_scale_code), 0.0F};
  }
  const int moved = extended_code(code) + 8 * exponent;
  if (moved >= static_cast<int>(smallest_scale_code)) {
    return {scale_byte(static_cast<u32>(moved)), 1.0F};
  }
  const float scale = machine::convert::to_float(
      machine::Half{static_cast<machine::u16>(machine::convert::e4m3x2_to_half2(static_cast<machine::u16>(code)))});
  return {scale_byte(smallest_scale_code), scale * power_of_two(exponent + 5)};
}

/// A code (with its scale's sign moved in) as it is packed.
TH_DEVICE u32 packed_code(u32 code, const PackedScale& scale) {
  if (scale.rescale == 1.0F) {
    return code;
  }
  const u32 magnitude = code & 7U;
  // Twice the values 0, 0.5, 1, 1.5, 2, 3, 4, 6.
  const float value = static_cast<float>(0xC8643210U >> (4 * magnitude) & 0xFU) * 0.5F;
  return nearest_magnitude(value * scale.rescale) | (code & 8U);
}

}  // namespace thresher::strategies::dual_gemm::packed::fast
