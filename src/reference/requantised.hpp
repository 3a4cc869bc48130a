#pragma once
/// What requantised outputs may be: which scales are right for values that are known to within a bound, and which
/// numbers under a scale that is there. The definition is formats/requantise.hpp.
#include <cstdint>
#include <span>

#include "reference/region.hpp"
#include "thresher/tensor.hpp"

namespace thresher::reference {

/// What one output may be before it meets its scale.
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
  bool may_be_one = false;  ///< of values that may all be 0
  bool is_nan = false;
  bool is_unknown = false;
  bool is_power_of_two = false;

  [[nodiscard]] bool holds(double scale) const;
};

/// How many columns of an output [m, n] share a scale that is found; 1 where none is.
[[nodiscard]] std::int64_t columns_per_scale(Format format, std::int64_t n);

/// The region, and of scales that are found every column of those that one of its columns shares.
[[nodiscard]] Region with_whole_scales(Region region, Format format, std::int64_t n);

/// The scales that the largest of some values may give, which share one of `c`; without the global scale. Whoever
/// multiplies by a reciprocal instead of dividing is right, too.
[[nodiscard]] ScaleRange right_scales(const Tensor& c, std::span<const ValueRange> values);

/// What a value may be when it is read again, under a scale as output_scale gives it.
[[nodiscard]] NumberRange right_numbers(Format format, const ValueRange& value, double scale);
/// The same under any scale between two.
[[nodiscard]] NumberRange right_numbers(Format format, const ValueRange& value, double min_scale, double largest_scale);

/// What multiplies the code at [row, column] of a requantised output, the global scale included.
[[nodiscard]] double output_scale(const Tensor& c, std::int64_t row, std::int64_t column);
/// What an output of any format is read as.
[[nodiscard]] double output_value(const Tensor& c, std::int64_t row, std::int64_t column);

}  // namespace thresher::reference
