#pragma once
/// THE definition of outputs in FP8 and NVFP4: values in float32 to codes under scales, each value rounded once. What
/// a scale is of is the format's: of fp8_tensor one that is given, of fp8_row and fp8_block one that is found here for
/// the row or for 128 values of it, of nvfp4 one that is found for 16 values, under a global scale that is given.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// The float32 scale of values whose largest magnitude is `amax`: amax / 448, at least 2^-126, the least whose
/// reciprocal is finite; 1 where all values are 0. As a power of two it is rounded up. Infinity gives infinity.
[[nodiscard]] float requantised_fp8_scale(float amax, bool power_of_two);

/// The e4m3 code of the scale of 16 values: amax / (6 · global scale), rounded to nearest and limited to 448.
[[nodiscard]] std::uint8_t requantised_nvfp4_scale(float amax, float global_scale);

/// Writes one row of `matrix`, which is in FP8 or NVFP4 as a requantised output: its codes, and its scales where the
/// format has some. A value is divided by its scale, and rounded to nearest even; what lies beyond the range becomes
/// the largest number. In FP8 NaN stays NaN and is no part of amax, and values whose scale is infinite are NaN when
/// they are read. NVFP4 has no NaN: its scale is NaN then, and with it all 16 values.
void quantize_row(const Tensor& matrix, std::int64_t row, std::span<const float> values);

}  // namespace thresher::formats
