#pragma once
/// One packed word of the exact path to four fragment words of fp16 or bf16: 8 weights, exactly value·scale·2^-14.
///
/// fp16: three magnitude bits at the bottom of the exponent and the top of the mantissa read as value·2^-14. The
/// product with the scale is a multiple of 2^-10·2^-14 = 2^-24 with at most six significant bits below 2^-2: always an
/// fp16 number. bf16: the same bits read as value·2^-126; the scale enters as scale·2^112.
#include "machine/numbers.hpp"
#include "machine/wgmma.hpp"
#include "strategies/dual_gemm/packed/device/exact_layout.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// The gate's and the up's scale of one k-step, each in both halves of a word.
struct ScalePair {
  u32 gate;
  u32 up;
};

namespace detail {

/// (value & magnitudes) | (signs & sign bits), the masks in both halves.
TH_DEVICE constexpr u32 join(u32 magnitudes, u32 magnitude_mask, u32 signs) {
  return (magnitudes & magnitude_mask) | (signs & 0x80008000U);
}

/// A half that holds an e4m3 value, in both halves of a word, to bf16 times 2^112: exact.
TH_DEVICE u32 to_bfloat16_scale(u32 both) {
  const float scale = machine::convert::to_float(machine::Half{static_cast<u16>(both)}) * 0x1p112F;
  return machine::convert::pack<machine::BFloat16>(scale, scale);
}

}  // namespace detail

/// The scales of k-step `step` from the 8 bytes of one (warp, lane/4): NaN codes give NaN.
template <typename Element>
TH_DEVICE ScalePair scales(const machine::Vector<u32, 2>& bytes, u32 step) {
  const u32 codes = bytes.at[step / 2] >> (step % 2 * 16);
  const u32 halves = machine::convert::e4m3x2_to_half2(static_cast<u16>(codes));
  const u32 gate = machine::packed::broadcast<0>(halves);
  const u32 up = machine::packed::broadcast<1>(halves);
  if constexpr (machine::is_same<Element, machine::Half>) {
    return {gate, up};
  } else {
    return {detail::to_bfloat16_scale(gate), detail::to_bfloat16_scale(up)};
  }
}

/// The fragment's pairs before scaling: fp16 value·2^-14.
TH_DEVICE machine::wgmma::Fragment spread_half(u32 word) {
  using detail::join;
  constexpr u32 mask = 0x0E000E00U;
  return {{word & (mask | 0x80008000U), (word << 3) & (mask | 0x80008000U), join(word << 6, mask, word << 1),
           join(word << 9, mask, word << 2)}};
}

/// bf16 value·2^-126.
TH_DEVICE machine::wgmma::Fragment spread_bfloat16(u32 word) {
  using detail::join;
  constexpr u32 mask = 0x01C001C0U;
  return {{join(word >> 3, mask, word), join(word, mask, word << 3), join(word << 3, mask, word << 1),
           join(word << 6, mask, word << 2)}};
}

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

}  // namespace thresher::strategies::dual_gemm::packed
