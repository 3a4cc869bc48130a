#include "reference/quantized_output.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "formats/elements.hpp"
#include "formats/numbers.hpp"
#include "formats/quantize_row.hpp"
#include "formats/scales.hpp"

namespace thresher::reference {
namespace {

/// Two roundings of float32, an approximate reciprocal's error of 1 ulp, and a margin.
constexpr double less = 1.0 - 0x1p-22;
constexpr double more = 1.0 + 0x1p-22;

/// The nearest number of the format.
double rounded(Format format, double quotient) {
  const auto value = static_cast<float>(quotient);
  return static_cast<double>(format == Format::nvfp4 ? formats::e2m1_to_float(formats::float_to_e2m1(value))
                                                     : formats::e4m3_to_float(formats::float_to_e4m3(value)));
}

struct Amax {
  double low = 0.0;
  double high = 0.0;
  bool has_nan = false;
  bool is_unknown = false;
};

Amax amax_of(std::span<const ValueRange> values) {
  Amax amax;
  for (const ValueRange& value : values) {
    amax.is_unknown = amax.is_unknown || value.is_unknown;
    amax.has_nan = amax.has_nan || value.is_nan;
    if (value.is_nan) {
      continue;
    }
    const double low = std::fabs(value.low);
    const double high = std::fabs(value.high);
    const bool has_zero = value.low <= 0.0 && value.high >= 0.0;
    amax.low = std::max(amax.low, has_zero ? 0.0 : std::min(low, high));
    amax.high = std::max({amax.high, low, high});
  }
  return amax;
}

double nvfp4_scale(double amax, double global_scale) {
  const std::uint8_t code = formats::quantized_nvfp4_scale(static_cast<float>(amax), static_cast<float>(global_scale));
  return static_cast<double>(formats::e4m3_to_float(code));
}

double fp8_scale(double amax, bool power_of_two) {
  return static_cast<double>(formats::quantized_fp8_scale(static_cast<float>(amax), power_of_two));
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::isinf(value) || std::frexp(value, &exponent) == 0.5;
}

}  // namespace

bool NumberRange::holds(double number) const {
  if (is_nan) {
    return std::isnan(number);
  }
  return std::isnan(number) ? may_be_nan : number >= low && number <= high;
}

bool ScaleRange::holds(double scale) const {
  if (is_unknown) {
    return true;
  }
  if (is_nan) {
    return std::isnan(scale);
  }
  return (may_be_one && scale == 1.0) ||
         (scale >= low && scale <= high && (!is_power_of_two || reference::is_power_of_two(scale)));
}

std::int64_t columns_per_scale(Format format, std::int64_t n) {
  const FormatTraits& traits = format_traits(format);
  return traits.is_quantized_output() && traits.has_scales() ? scale_block_of(format, OperandRole::tokens, n).columns
                                                             : 1;
}

Region with_whole_scales(Region region, Format format, std::int64_t n) {
  const std::int64_t shared = columns_per_scale(format, n);
  std::vector<std::int64_t> columns;
  for (const std::int64_t column : region.columns) {
    const std::int64_t first = column - column % shared;
    const std::int64_t next = columns.empty() ? 0 : columns.back() + 1;
    for (std::int64_t each = std::max(first, next); each < std::min(first + shared, n); ++each) {
      columns.push_back(each);
    }
  }
  return {std::move(region.rows), std::move(columns)};
}

ScaleRange right_scales(const Tensor& c, std::span<const ValueRange> values) {
  const Amax amax = amax_of(values);
  ScaleRange right{.is_unknown = amax.is_unknown};
  if (c.format == Format::nvfp4) {
    const double global_scale = formats::global_scale(c);
    right.is_nan = amax.has_nan;
    right.low = nvfp4_scale(amax.low * less, global_scale);
    right.high = nvfp4_scale(amax.high * more, global_scale);
    return right;
  }
  constexpr double least = 0x1p-126;
  right.is_power_of_two = c.scales.powers_of_two;
  right.may_be_one = amax.low == 0.0;
  right.low = right.may_be_one ? least : fp8_scale(amax.low * less, right.is_power_of_two);
  right.high = amax.high == 0.0 ? 0.0 : fp8_scale(amax.high * more, right.is_power_of_two);
  return right;
}

NumberRange right_numbers(Format format, const ValueRange& value, double scale) {
  return right_numbers(format, value, scale, scale);
}

NumberRange right_numbers(Format format, const ValueRange& value, double min_scale, double largest_scale) {
  if (value.is_unknown) {
    return {.low = -HUGE_VAL, .high = HUGE_VAL, .may_be_nan = true};
  }
  if (value.is_nan || !std::isfinite(largest_scale)) {
    return {.may_be_nan = true, .is_nan = true};
  }
  if (largest_scale == 0.0) {
    return {};
  }
  // A quantized value is furthest from 0 under the smallest scale, and its read value under the largest.
  const auto outwards = [&](double end) {
    return end == 0.0 ? 0.0 : rounded(format, end / min_scale * more) * largest_scale;
  };
  const auto inwards = [&](double end) { return rounded(format, end / largest_scale * less) * min_scale; };
  return {.low = value.low > 0.0 ? inwards(value.low) : outwards(value.low),
          .high = value.high > 0.0 ? outwards(value.high) : inwards(value.high)};
}

double output_scale(const Tensor& c, std::int64_t row, std::int64_t column) {
  const double global_scale = formats::global_scale(c);
  switch (c.format) {
    case Format::fp8_tensor: return global_scale;
    case Format::nvfp4:
      return global_scale *
             static_cast<double>(formats::e4m3_to_float(c.scales.codes()[formats::scale_index(c, row, column)]));
    default: return static_cast<double>(formats::fp8_scale(c, row, column));
  }
}

double output_value(const Tensor& c, std::int64_t row, std::int64_t column) {
  return formats::element(c, row, column) * formats::global_scale(c);
}

}  // namespace thresher::reference
