#pragma once
/// The rows that are quantized.
#include <cstdint>
#include <span>
#include <string_view>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// The format to which rows are quantized.
struct QuantizationTarget {
  std::string_view name;
  std::int64_t k_multiple = 1;

  constexpr QuantizationTarget(std::string_view its_name, std::int64_t multiple)
      : name(its_name), k_multiple(multiple) {}
  constexpr QuantizationTarget(Format format)  // NOLINT(google-explicit-constructor): most targets are formats
      : name(thresher::name(format)), k_multiple(format_traits(format).k_multiple) {}
};

/// Throws Error(invalid_argument) naming `role` unless the matrix is of one floating-point format, and `target`
/// supports its K.
void check_quantizable(const Tensor& matrix, std::string_view role, const QuantizationTarget& target);

/// A row as decode_row gives it. Throws Error(invalid_argument) naming `role` and the element if one is NaN or Inf,
/// which `target` cannot represent.
void decode_finite_row(const Tensor& matrix, std::int64_t row, std::span<float> out, std::string_view role,
                       const QuantizationTarget& target);

[[nodiscard]] float largest_magnitude(std::span<const float> values) noexcept;

}  // namespace thresher::formats
