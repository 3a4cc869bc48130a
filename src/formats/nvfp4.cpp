#include "formats/nvfp4.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "formats/finite_rows.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"

namespace thresher::formats {
namespace {

constexpr float largest_scaled_value = e2m1_max * e4m3_max;  // 2688

/// Also rejects NaN and Inf, which the format cannot represent.
float largest_magnitude_checked(const Tensor& matrix, std::string_view role, std::span<float> row_buffer) {
  float largest = 0.0F;
  for (std::int64_t row = 0; row < matrix.shape[0]; ++row) {
    decode_finite_row(matrix, row, row_buffer, role, Format::nvfp4);
    largest = std::max(largest, largest_magnitude(row_buffer));
  }
  return largest;
}

std::uint8_t quantize_value(float value, float step) {
  const float quotient = value / step;
  // 0/0 arises where a subnormal global scale makes the step underflow.
  return std::isnan(quotient) ? std::uint8_t{0} : float_to_e2m1(quotient);
}

/// Writes 8 bytes and returns the block's scale.
std::uint8_t quantize_block(std::span<const float> block, float global_scale, std::uint8_t* pairs) {
  const std::uint8_t scale = float_to_e4m3(largest_magnitude(block) / (e2m1_max * global_scale));
  if (scale == 0) {
    std::fill_n(pairs, block.size() / 2, std::uint8_t{0});
    return scale;
  }
  const float step = e4m3_to_float(scale) * global_scale;
  for (std::size_t i = 0; i < block.size(); i += 2) {
    pairs[i / 2] =
        static_cast<std::uint8_t>(quantize_value(block[i], step) | (quantize_value(block[i + 1], step) << 4));
  }
  return scale;
}

}  // namespace

Tensor Nvfp4Matrix::view() noexcept {
  return Tensor::nvfp4(values.data(), scales.data(), rows, k, &global_scale, scale_layout);
}

Nvfp4Matrix quantize_nvfp4(const Tensor& matrix, std::string_view role, ScaleLayout layout) {
  check_quantizable(matrix, role, Format::nvfp4);
  const std::int64_t rows = matrix.shape[0];
  const std::int64_t k = matrix.shape[1];
  Nvfp4Matrix out{.rows = rows, .k = k, .values = {}, .scales = {}, .scale_layout = layout, .global_scale = 1.0F};
  out.values.resize(static_cast<std::size_t>(matrix.elements() / 2));
  out.scales.resize(scale_bytes(rows, k, layout), 0);
  if (matrix.elements() == 0) {
    return out;  // without a loop over empty rows, of which there may be 2^62
  }

  std::vector<float> row_buffer(static_cast<std::size_t>(k));
  const float global_scale = largest_magnitude_checked(matrix, role, row_buffer) / largest_scaled_value;
  if (global_scale != 0.0F) {
    out.global_scale = global_scale;
  }
  std::uint8_t* pairs = out.values.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    decode_row(matrix, row, row_buffer);
    for (std::int64_t block = 0; block < k / scale_block; ++block) {
      const auto elements =
          std::span<const float>(row_buffer)
              .subspan(static_cast<std::size_t>(block * scale_block), static_cast<std::size_t>(scale_block));
      out.scales[scale_offset(row, block, k / scale_block, layout)] = quantize_block(elements, out.global_scale, pairs);
      pairs += scale_block / 2;
    }
  }
  return out;
}

namespace {

template <typename Real>
std::vector<Real> dequantize(const Tensor& matrix, std::string_view role) {
  check_matrix(matrix, role, matrix.shape[0], matrix.shape[1], matrix.format);
  const auto columns = static_cast<std::size_t>(matrix.shape[1]);
  const auto global = static_cast<Real>(global_scale(matrix));
  std::vector<Real> out(static_cast<std::size_t>(matrix.elements()));
  for (std::int64_t row = 0; row < (out.empty() ? 0 : matrix.shape[0]); ++row) {
    const auto values = std::span<Real>(out).subspan(static_cast<std::size_t>(row) * columns, columns);
    decode_row(matrix, row, values);
    std::transform(values.begin(), values.end(), values.begin(), [global](Real value) { return value * global; });
  }
  return out;
}

}  // namespace

std::vector<double> dequantize_to_double(const Tensor& matrix, std::string_view role) {
  return dequantize<double>(matrix, role);
}

std::vector<float> dequantize_to_float(const Tensor& matrix, std::string_view role) {
  return dequantize<float>(matrix, role);
}

}  // namespace thresher::formats
