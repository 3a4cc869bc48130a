#pragma once
/// How the two numerics hold their A operand: what a thread reads of a packed block, and how it becomes wgmma
/// fragments.
#include "machine/numbers.hpp"
#include "machine/shared.hpp"
#include "machine/wgmma.hpp"
#include "strategies/gemm/wgmma_dequant/device/fast_layout.hpp"

namespace thresher::strategies::gemm::wgmma_dequant {

// --- exact: fp16 or bf16, exactly value·scale·2^-14.
//
// In fp16 three magnitude bits at the bottom of the exponent and the top of the mantissa read as value·2^-14. The
// product with the scale is a multiple of 2^-10·2^-14 = 2^-24 with at most six significant bits below 2^-2. That is
// always an fp16 number. In bf16 the same bits read as value·2^-126, and the scale enters as scale·2^112.

/// The gate's and the up's scale of one k-step, each in both halves of a word.
struct ScalePair {
  u32 gate;
  u32 up;
};

/// The scales of k-step `step` from the 8 bytes of one (warp, lane/4): NaN stays NaN. A byte is bits 14:7 in fp16. In
/// bf16 it is bits 11:4, and 0x7000 adds 224 to the exponent; a byte of 0 is then no zero.
template <typename Element>
TH_DEVICE ScalePair scales(const machine::Vector<u32, 2>& bytes, u32 step) {
  // Selector 4 is a zero byte.
  const u32 spread = machine::bits::permute(bytes.at[step / 2], 0, step % 2 == 0 ? 0x4140U : 0x4342U);
  const u32 both = machine::is_same<Element, machine::Half> ? spread * 128U : spread * 16U + 0x70007000U;
  return {machine::packed::broadcast<0>(both), machine::packed::broadcast<1>(both)};
}

namespace detail {

/// (value & magnitudes) | (signs & sign bits), the masks in both halves.
TH_DEVICE constexpr u32 join(u32 magnitudes, u32 magnitude_mask, u32 signs) {
  return (magnitudes & magnitude_mask) | (signs & 0x80008000U);
}

/// Pair 3 alone, its signs at bit 15 and its magnitudes `shift` further left. Either lies where the other's shift takes
/// it too, where it neither meets a wanted bit nor carries into one.
template <u32 shift>
TH_DEVICE constexpr u32 last_pair(u32 word) {
  constexpr u32 sign_shift = 15 - sign_bit(3);
  return (word & place(0xF, 3) * 0x00010001U) * (1U << sign_shift | 1U << shift);
}

}  // namespace detail

/// The fragment's pairs before scaling: fp16 value·2^-14.
TH_DEVICE machine::wgmma::Fragment spread_half(u32 word) {
  using detail::join;
  constexpr u32 mask = 0x0E000E00U;
  constexpr u32 signed_mask = mask | 0x80008000U;
  return {{join(word, mask, word << 1), join(word << 3, mask, word), join(word << 6, mask, word << 3),
           detail::last_pair<9>(word) & signed_mask}};
}

/// bf16 value·2^-126.
TH_DEVICE machine::wgmma::Fragment spread_bfloat16(u32 word) {
  using detail::join;
  constexpr u32 mask = 0x01C001C0U;
  constexpr u32 signed_mask = mask | 0x80008000U;
  return {{join(word >> 3, mask, word << 1), word & signed_mask, word << 3 & signed_mask,
           detail::last_pair<6>(word) & signed_mask}};
}

/// One packed word, 8 weights, to four fragment words.
template <typename Element>
TH_DEVICE machine::wgmma::Fragment dequantize(u32 word, ScalePair scale) {
  machine::wgmma::Fragment fragment =
      machine::is_same<Element, machine::Half> ? spread_half(word) : spread_bfloat16(word);
  fragment.word[0] = machine::packed::multiply<Element>(fragment.word[0], scale.gate);
  fragment.word[1] = machine::packed::multiply<Element>(fragment.word[1], scale.up);
  fragment.word[2] = machine::packed::multiply<Element>(fragment.word[2], scale.gate);
  fragment.word[3] = machine::packed::multiply<Element>(fragment.word[3], scale.up);
  return fragment;
}

/// Blocks of 64 along K, four k-steps of 16; ElementType is Half or BFloat16.
template <typename ElementType>
struct ExactOperand {
  using Element = ElementType;
  /// A word for each k-step, and the 8 scales of the thread's outputs.
  struct Packed {
    machine::Vector<u32, 4> words;
    machine::Vector<u32, 2> scales;
  };
  static constexpr int steps = static_cast<int>(wgmma_dequant::steps);

  static TH_DEVICE Packed fetch(machine::Shared<u8> block, u32 thread) {
    return {block.as<machine::Vector<u32, 4>>().load(thread),
            block.offset_bytes(block_value_bytes).as<machine::Vector<u32, 2>>().load(thread / 4)};
  }
  static TH_DEVICE machine::wgmma::Fragment expand(const Packed& packed, int step) {
    return dequantize<Element>(packed.words.at[step], scales<Element>(packed.scales, static_cast<u32>(step)));
  }
};

// --- fast: e4m3(value·scale), rounded once

namespace fast {

/// The products of one scale with the eight magnitudes of e2m1, a byte each.
struct Products {
  u32 low;   ///< of 0, 0.5, 1, 1.5
  u32 high;  ///< of 2, 3, 4, 6
};

/// Byte `at` of a thread's four bytes of scales. With code c and rounding bit r the byte is x = c + 128r, and the
/// products are bytes of c + r·… + constants. They are multiply-adds, which leave the integer units to `to_e4m3`.
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

/// One packed word, 8 weights, to two fragment words.
TH_DEVICE WordPair to_e4m3(u32 word, const Products& products) {
  using machine::bits::permute;
  const u32 selectors = word & 0x77777777U;
  return {permute(products.low, products.high, selectors) | (word & 0x80808080U),
          permute(products.low, products.high, selectors >> 16) | (word << 4 & 0x80808080U)};
}

}  // namespace fast

/// Blocks of 128 along K, four k-steps of 32.
struct FastOperand {
  using Element = machine::E4M3;
  struct Packed {
    machine::Vector<u32, 4> words[fast::halves];
    u32 scales;
  };
  static constexpr int steps = static_cast<int>(fast::steps);

  static TH_DEVICE Packed fetch(machine::Shared<u8> block, u32 thread) {
    const auto words = block.as<machine::Vector<u32, 4>>();
    return {{words.load(thread), words.load(threads + thread)},
            block.offset_bytes(fast::block_value_bytes).as<u32>().load(thread)};
  }
  static TH_DEVICE machine::wgmma::Fragment expand(const Packed& packed, int step) {
    const fast::Products gate_products = step < 2 ? fast::products<0>(packed.scales) : fast::products<2>(packed.scales);
    const fast::Products up_products = step < 2 ? fast::products<1>(packed.scales) : fast::products<3>(packed.scales);
    const machine::Vector<u32, 4>& words = packed.words[step / 2];
    const fast::WordPair gate = fast::to_e4m3(words.at[step % 2 * 2], gate_products);
    const fast::WordPair up = fast::to_e4m3(words.at[step % 2 * 2 + 1], up_products);
    return {{gate.first, up.first, gate.second, up.second}};
  }
};

}  // namespace thresher::strategies::gemm::wgmma_dequant
