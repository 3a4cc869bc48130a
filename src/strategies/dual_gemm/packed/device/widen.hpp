#pragma once
/// NVFP4 codes to fp16, for tokens.
#include "machine/numbers.hpp"
#include "strategies/dual_gemm/packed/device/matrix.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// The low four codes of `codes` times their scale in fp16: exact. The halves of e2m1's magnitudes have nothing in
/// their low bytes, so a permutation with the codes as selectors finds the high ones.
TH_DEVICE machine::Vector<u32, 2> widen_four(u32 codes, u32 scale) {
  using machine::bits::permute;
  const u32 magnitudes = permute(0x3E3C3800U, 0x46444240U, codes & 0x7777U);
  const u32 signs = permute(0x00008000U, 0, codes >> 3 & 0x1111U);
  const u32 high_bytes = magnitudes | signs;
  // Selector 4 is a zero byte.
  return {{machine::packed::multiply<machine::Half>(permute(high_bytes, 0, 0x1404U), scale),
           machine::packed::multiply<machine::Half>(permute(high_bytes, 0, 0x3424U), scale)}};
}

}  // namespace thresher::strategies::dual_gemm::packed
