#include "formats/finite_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/decode.hpp"
#include "formats/elements.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {

void check_quantizable(const Tensor& matrix, std::string_view role, const QuantizationTarget& target) {
  const bool is_plain = matrix.format == Format::fp32 || matrix.format == Format::fp16 ||
                        matrix.format == Format::bf16 || matrix.format == Format::fp8_e4m3;
  if (!is_plain) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is {}, but only a floating-point matrix can be quantized to {}", role,
                            name(matrix.format), target.name));
  }
  check_matrix(matrix, role, matrix.shape[0], matrix.shape[1], matrix.format);
  if (matrix.shape[1] % target.k_multiple != 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has K = {}, but {} needs a K that is a multiple of {}",
                                                         role, matrix.shape[1], target.name, target.k_multiple));
  }
}

void decode_finite_row(const Tensor& matrix, std::int64_t row, std::span<float> out, std::string_view role,
                       const QuantizationTarget& target) {
  decode_row(matrix, row, out);
  const auto odd = std::find_if(out.begin(), out.end(), [](float value) { return !std::isfinite(value); });
  if (odd != out.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} at [{}, {}], which {} cannot hold; every element must be finite", role, *odd,
                            row, odd - out.begin(), target.name));
  }
}

float largest_magnitude(std::span<const float> values) noexcept {
  float largest = 0.0F;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

}  // namespace thresher::formats
