#pragma once
/// Outputs in FP8: their scales, static or dynamic, and their values under them. `formats::quantize_row` is the
/// definition; what is divided there is multiplied by a reciprocal here.
#include "machine/numbers.hpp"
#include "pipeline/grouped/directory.hpp"
#include "strategies/gemm/device/finish_params.hpp"

namespace thresher::strategies::gemm {

/// A scale, and what values are multiplied by.
struct OutputScale {
  float scale = 1;
  float inverse = 1;
};

/// amax / 448, at least 2^-126 and 1 where amax is 0. NaN is no part of amax, infinity gives infinity.
TH_DEVICE OutputScale scale_for(const OutputScaleParams& params, float amax) {
  constexpr float reciprocal_of_most = 1.0F / 448.0F;
  float scale = math::max(amax * reciprocal_of_most, 0x1p-126F);
  if (params.powers_of_two != 0) {
    scale = convert::bits_float((convert::float_bits(scale) + 0x7FFFFFU) & 0x7F800000U);
  }
  scale = amax == 0.0F ? 1.0F : scale;
  return {scale, math::reciprocal_approx(scale)};
}

/// 1 over the scale of all outputs, or of a slot's.
TH_DEVICE float given_inverse(const OutputScaleParams& params, u32 slot) {
  return params.scales.is_null() ? 1.0F : math::reciprocal_approx(params.scales.load(slot * params.slot_stride));
}

/// Stores the scale of the 128 outputs of a row of C that begin with `output`. With slots, `row` is a row of the slot.
TH_DEVICE void store_scale(const OutputScaleParams& params, u32 slot, u32 row, u32 output, float scale) {
  const u64 at = static_cast<u64>(slot) * params.slot_stride + static_cast<u64>(row) * params.row_stride +
                 static_cast<u64>(output / scale_block) * params.block_stride;
  params.scales.offset(static_cast<i64>(at)).store(0, scale);
}

}  // namespace thresher::strategies::gemm
