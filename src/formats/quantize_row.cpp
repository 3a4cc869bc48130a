#include "formats/quantize_row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/scales.hpp"

namespace thresher::formats {
namespace {

/// The multiplier of an NVFP4 value is smallest if it is subnormal; if it is 0, the value is 0.
std::uint8_t e2m1_of(float value, float step) {
  const float quotient = value / step;
  return std::isnan(quotient) || step == 0.0F ? std::uint8_t{0} : float_to_e2m1(quotient);
}

void write_fp8(std::span<const float> values, float scale, std::uint8_t* codes) {
  std::transform(values.begin(), values.end(), codes, [scale](float value) { return float_to_e4m3(value / scale); });
}

/// Ignores NaN: the order of the operands matters.
float largest_number(std::span<const float> values) {
  float amax = 0.0F;
  for (const float value : values) {
    amax = std::max(amax, std::fabs(value));
  }
  return amax;
}

/// NaN if one is among them.
float largest_or_nan(std::span<const float> values) {
  float amax = 0.0F;
  for (const float value : values) {
    if (std::isnan(value)) {
      return value;
    }
    amax = std::max(amax, std::fabs(value));
  }
  return amax;
}

/// Returns the scale's code.
std::uint8_t write_nvfp4(std::span<const float> values, float global_scale, std::uint8_t* pairs) {
  const std::uint8_t scale = quantized_nvfp4_scale(largest_or_nan(values), global_scale);
  const float step = e4m3_to_float(scale) * global_scale;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    pairs[i / 2] = static_cast<std::uint8_t>(e2m1_of(values[i], step) | e2m1_of(values[i + 1], step) << 4);
  }
  return scale;
}

}  // namespace

float quantized_fp8_scale(float amax, bool power_of_two) {
  if (amax == 0.0F) {
    return 1.0F;
  }
  const float scale = std::max(amax / e4m3_max, 0x1p-126F);
  if (!power_of_two) {
    return scale;
  }
  constexpr std::uint32_t fraction = 0x7FFFFFU;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(scale) + fraction) & ~fraction);
}

std::uint8_t quantized_nvfp4_scale(float amax, float global_scale) {
  return float_to_e4m3(amax / (e2m1_max * global_scale));
}

void quantize_row(const Tensor& matrix, std::int64_t row, std::span<const float> values) {
  auto* const codes = static_cast<std::uint8_t*>(matrix.data) + row * matrix.strides[0] * bits(matrix.format) / 8;
  const auto global = static_cast<float>(global_scale(matrix));
  if (matrix.format == Format::fp8_tensor) {
    write_fp8(values, global, codes);
    return;
  }
  void* const scales = const_cast<void*>(matrix.scales.data);  // a Tensor has one pointer for inputs and outputs
  const std::int64_t columns = matrix.scales.block.columns;
  for (std::int64_t column = 0; column < std::ssize(values); column += columns) {
    const auto count = std::min<std::int64_t>(columns, std::ssize(values) - column);
    const std::span<const float> block =
        values.subspan(static_cast<std::size_t>(column), static_cast<std::size_t>(count));
    const std::int64_t at = scale_index(matrix, row, column);
    if (matrix.format == Format::nvfp4) {
      static_cast<std::uint8_t*>(scales)[at] = write_nvfp4(block, global, codes + column / 2);
      continue;
    }
    const float scale = quantized_fp8_scale(largest_number(block), matrix.scales.powers_of_two);
    static_cast<float*>(scales)[at] = scale;
    write_fp8(block, scale, codes + column);
  }
}

}  // namespace thresher::formats
