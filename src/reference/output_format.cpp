#include "reference/output_format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "thresher/error.hpp"

namespace thresher::reference {
namespace {

struct Shape {
  int mantissa_bits;
  int smallest_exponent;  ///< of normal numbers
  int largest_exponent;
};

Shape shape_of(Format format) {
  switch (format_traits(format).is_quantized_output() ? Format::fp32 : format) {
    case Format::fp16: return {10, -14, 15};
    case Format::bf16: return {7, -126, 127};
    case Format::fp32: return {23, -126, 127};
    default:
      throw Error(ErrorCode::unsupported,
                  std::string(name(format)) + " is not an output format; use fp16, bf16 or fp32");
  }
}

}  // namespace

double ulp(Format format, double value) {
  const Shape shape = shape_of(format);
  const int exponent = value == 0.0 ? shape.smallest_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::clamp(exponent, shape.smallest_exponent, shape.largest_exponent) - shape.mantissa_bits);
}

double overflow_threshold(Format format) {
  const Shape shape = shape_of(format);
  return std::ldexp(2.0 - std::ldexp(1.0, -shape.mantissa_bits - 1), shape.largest_exponent);
}

double round_to(Format format, double value) {
  if (!std::isfinite(value)) {
    return value;
  }
  if (std::fabs(value) >= overflow_threshold(format)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  // Division and multiplication by a power of two are exact; nearbyint rounds ties to even.
  const double step = ulp(format, value);
  return std::nearbyint(value / step) * step;
}

}  // namespace thresher::reference
