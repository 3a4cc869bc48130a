#pragma once
/// Quantization to FP8.
#include <cstdint>
#include <string_view>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// An owned matrix [rows, k] in fp8_tensor, fp8_row or fp8_block: element = e4m3 × scale.
struct Fp8Matrix {
  Format format = Format::fp8_row;
  OperandRole role = OperandRole::weights;
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::vector<std::uint8_t> values;  ///< [rows, k]
  std::vector<float> scales;         ///< in `scale_layout`, padding 0; the one of fp8_tensor
  ScaleLayout scale_layout = ScaleLayout::row_major;

  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() noexcept;
};

/// Quantizes a floating-point matrix [rows, k]: s = amax/448 of the values that share a scale (1 if that is 0), value =
/// e4m3(x / s), saturating; float32 arithmetic, to nearest even. Throws Error(invalid_argument) naming `name` when K is
/// not a multiple of 16 or when scales of `role` do not support the layout. Names the element too when it is NaN or
/// Inf.
[[nodiscard]] Fp8Matrix quantize_fp8(const Tensor& matrix, std::string_view name, Format format, OperandRole role,
                                     ScaleLayout layout = ScaleLayout::row_major);

}  // namespace thresher::formats
