#pragma once
/// The allowed values of quantized outputs: which scales are right for values known within a bound, and which numbers
/// are right under a given scale. The definition is `formats/quantize_row.hpp`.
#include <cstdint>
#include <span>

#include "reference/region.hpp"
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// The possible values of one output before the division by its scale.
struct ValueRange {
  double low = 0.0;
  double high = 0.0;
  bool is_nan = false;
  bool is_unknown = false;  ///< a plain computation overflows on the way to a finite one
};

struct NumberRange {
  double low = 0.0;
  double high = 0.0;
  bool may_be_nan = false;
  bool is_nan = false;

  [[nodiscard]] bool holds(double number) const;
};

struct ScaleRange {
  double low = 0.0;
  double high = 0.0;
  bool may_be_one = false;  ///< for values that may all be 0
  bool is_nan = false;
  bool is_unknown = false;
  bool is_power_of_two = false;

  [[nodiscard]] bool holds(double scale) const;
};

/// The number of columns of an output [m, n] that share a dynamic scale; 1 without dynamic scales.
[[nodiscard]] std::int64_t columns_per_scale(Format format, std::int64_t n);

/// The region, with all columns that share a dynamic scale with one of its columns.
[[nodiscard]] Region with_whole_scales(Region region, Format format, std::int64_t n);

/// The scales that the maximum of some values may give, which share one of `c`; without the global scale.
/// Multiplication by a reciprocal instead of division is right, too.
[[nodiscard]] ScaleRange right_scales(const Tensor& c, std::span<const ValueRange> values);

/// The possible numbers when a value is read again, under a scale as output_scale gives it.
[[nodiscard]] NumberRange right_numbers(Format format, const ValueRange& value, double scale);
/// The same under any scale between two.
[[nodiscard]] NumberRange right_numbers(Format format, const ValueRange& value, double min_scale, double largest_scale);

/// The factor of the value at [row, column] of a quantized output, including the global scale.
[[nodiscard]] double output_scale(const Tensor& c, std::int64_t row, std::int64_t column);
/// The number that an output of any format reads as.
[[nodiscard]] double output_value(const Tensor& c, std::int64_t row, std::int64_t column);

}  // namespace thresher::reference
