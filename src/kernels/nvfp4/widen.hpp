#pragma once
/// NVFP4 codes to fp16, for tokens.
#include "kernels/nvfp4/matrix.hpp"
#include "machine/numbers.hpp"

namespace thresher::kernels::nvfp4 {

/// Four codes of `codes` (from bit 0) times their scale in fp16: exact.
TH_DEVICE machine::Vector<u32, 2> widen_four(u32 codes, u32 scale) {
  constexpr u32 two_to_14 = 0x74007400U;
  machine::Vector<u32, 2> result;
  TH_UNROLL
  for (u32 i = 0; i < 2; ++i) {
    const u32 pair = codes >> (8 * i);
    const u32 spread = (pair & 0xFU) | (pair & 0xF0U) << 12;
    const u32 value = (spread & 0x00070007U) << 9 | (spread & 0x00080008U) << 12;
    result.at[i] =
        machine::packed::multiply<machine::Half>(machine::packed::multiply<machine::Half>(value, two_to_14), scale);
  }
  return result;
}

}  // namespace thresher::kernels::nvfp4
