#pragma once
/// THE definition of quantized outputs in FP8 and NVFP4: float32 values become FP8 or FP4 values with scales, each
/// value rounded once. fp8_tensor has one static scale. fp8_row and fp8_block have dynamic scales, per row or per 128
/// values of it. nvfp4 has a dynamic scale per 16 values, under a static global scale.
#include <cstdint>
#include <span>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// The float32 scale of values whose maximum magnitude is `amax`: amax / 448, at least 2^-126, the smallest number
/// whose reciprocal is finite; 1 where all values are 0. As a power of two it is rounded up. Infinity gives infinity.
[[nodiscard]] float quantized_fp8_scale(float amax, bool power_of_two);

/// The e4m3 code of the scale of 16 values: amax / (6 · global scale), rounded to nearest and limited to 448.
[[nodiscard]] std::uint8_t quantized_nvfp4_scale(float amax, float global_scale);

/// Writes one row of `matrix`, a quantized output in FP8 or NVFP4: its values, and its scales if the format has them. A
/// value is divided by its scale, rounded to nearest even, and saturated. In FP8 NaN stays NaN and does not count for
/// amax; values whose scale is infinite read as NaN. NVFP4 has no NaN: its scale becomes NaN, and with it all 16
/// values.
void quantize_row(const Tensor& matrix, std::int64_t row, std::span<const float> values);

}  // namespace thresher::formats
