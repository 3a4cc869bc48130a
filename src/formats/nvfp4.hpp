#pragma once
/// Quantization to NVFP4 and back.
#include <cstdint>
#include <string_view>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// An owned NVFP4 matrix [rows, k]: element = e2m1 × scale × global_scale.
struct Nvfp4Matrix {
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::vector<std::uint8_t> values;  ///< [rows, k/2], low nibble first
  std::vector<std::uint8_t> scales;  ///< e4m3, in `scale_layout`
  ScaleLayout scale_layout = ScaleLayout::row_major;
  float global_scale = 1.0F;

  /// Refers to this object, which must outlive the view and not move.
  [[nodiscard]] Tensor view() noexcept;
};

/// Quantizes a floating-point matrix [rows, k]: g = amax/2688 (1 if that is 0), s = e4m3(block amax / (6·g)), q =
/// e2m1(x / (s·g)), saturating and 0 where s = 0; float32 arithmetic, to nearest even. Throws Error(invalid_argument)
/// naming `role` when K is not a multiple of 16, and the element when it is NaN or Inf.
[[nodiscard]] Nvfp4Matrix quantize_nvfp4(const Tensor& matrix, std::string_view role,
                                         ScaleLayout layout = ScaleLayout::row_major);

/// Row-major [rows, k] with the global scale: exact in double, one rounding in float. Accepts the formats of
/// check_matrix.
[[nodiscard]] std::vector<double> dequantize_to_double(const Tensor& matrix, std::string_view role);
[[nodiscard]] std::vector<float> dequantize_to_float(const Tensor& matrix, std::string_view role);

}  // namespace thresher::formats
