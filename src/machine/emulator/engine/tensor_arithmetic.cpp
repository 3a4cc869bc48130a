#include "machine/emulator/engine/tensor_arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace thresher::emulator {
namespace {

constexpr std::uint32_t nan_word = 0x7FFFFFFFU;
constexpr std::uint32_t infinity_word = 0x7F800000U;
constexpr int no_exponent = std::numeric_limits<int>::min() / 2;

/// An encoding with a hidden bit: IEEE's specials if `has_infinity`, otherwise NaN is all ones if `has_nan`.
template <int exponent_bits, int fraction_bits, bool has_infinity>
TensorElement decode(std::uint32_t bits) {
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr std::uint32_t all_exponents = (1U << exponent_bits) - 1U;
  constexpr std::uint32_t all_fractions = (1U << fraction_bits) - 1U;
  const std::uint32_t fraction = bits & all_fractions;
  const std::uint32_t exponent = bits >> fraction_bits & all_exponents;
  const bool negative = (bits >> (exponent_bits + fraction_bits) & 1U) != 0;
  TensorElement element;
  const auto magnitude = static_cast<std::int32_t>(exponent == 0 ? fraction : fraction | 1U << fraction_bits);
  element.mantissa = negative ? -magnitude : magnitude;
  element.raw = static_cast<std::int16_t>(static_cast<int>(std::max(exponent, 1U)) - bias);
  if (exponent == all_exponents) {
    element.is_infinite = has_infinity && fraction == 0;
    element.is_nan = has_infinity ? fraction != 0 : fraction == all_fractions;
  }
  return element;
}

constexpr int float_fraction_bits = 23;
TensorElement decode_float(std::uint32_t bits) { return decode<8, float_fraction_bits, true>(bits); }

/// term · 2^exponent in units of 2^unit, truncated towards zero.
std::int64_t cut(std::int64_t term, int exponent, int unit) {
  const int shift = exponent - unit;
  if (term == 0 || shift < -62) {
    return 0;
  }
  if (shift >= 0) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(term) << shift);
  }
  const std::int64_t magnitude = std::abs(term) >> -shift;
  return term < 0 ? -magnitude : magnitude;
}

/// sum · 2^exponent as a float32, rounded towards zero.
std::uint32_t rounded(std::int64_t sum, int exponent) {
  if (sum == 0) {
    return 0;
  }
  const std::uint32_t sign = sum < 0 ? 0x80000000U : 0U;
  const auto magnitude = static_cast<std::uint64_t>(std::abs(sum));
  const int top = 63 - std::countl_zero(magnitude) + exponent;
  if (top > 127) {
    return sign | infinity_word;
  }
  const int unit = std::max(top, -126) - float_fraction_bits;
  const int shift = exponent - unit;
  const std::uint64_t fraction = shift >= 0 ? magnitude << shift : shift > -64 ? magnitude >> -shift : 0;
  if (fraction == 0) {
    return 0;
  }
  if (top < -126) {
    return sign | static_cast<std::uint32_t>(fraction);
  }
  return sign | static_cast<std::uint32_t>(top + 127) << float_fraction_bits |
         (static_cast<std::uint32_t>(fraction) & 0x7FFFFFU);
}

/// Infinities of either sign among the terms of a sum.
struct Infinities {
  bool positive = false;
  bool negative = false;
  void add(bool is_negative) { (is_negative ? negative : positive) = true; }
  [[nodiscard]] bool any() const { return positive || negative; }
  [[nodiscard]] std::uint32_t word() const {
    return positive && negative ? nan_word : negative ? 0x80000000U | infinity_word : infinity_word;
  }
};

}  // namespace

TensorFormat tensor_fp16() { return {10, decode<5, 10, true>}; }
TensorFormat tensor_bf16() { return {7, decode<8, 7, true>}; }
TensorFormat tensor_e4m3() { return {3, decode<4, 3, false>}; }

std::uint32_t tensor_dot(const TensorElement* a, const TensorElement* b, std::uint32_t count, int fraction_bits,
                         std::uint32_t c) {
  constexpr int window = 25;
  const TensorElement sum_before = decode_float(c);
  Infinities infinities;
  bool is_nan = sum_before.is_nan;
  int greatest = sum_before.mantissa != 0 ? sum_before.raw : no_exponent;
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorElement& x = a[i];
    const TensorElement& y = b[i];
    is_nan = is_nan || x.is_nan || y.is_nan;
    const bool is_zero = x.mantissa == 0 || y.mantissa == 0;
    if (x.is_infinite || y.is_infinite) {
      is_nan = is_nan || is_zero;
      infinities.add((x.mantissa < 0) != (y.mantissa < 0));
    } else if (!is_zero) {
      greatest = std::max(greatest, x.raw + y.raw);
    }
  }
  if (is_nan) {
    return nan_word;
  }
  if (sum_before.is_infinite) {
    infinities.add(sum_before.mantissa < 0);
  }
  if (infinities.any()) {
    return infinities.word();
  }
  if (greatest == no_exponent) {
    return 0;
  }
  const int unit = greatest - window;
  std::int64_t sum = cut(sum_before.mantissa, sum_before.raw - float_fraction_bits, unit);
  for (std::uint32_t i = 0; i < count; ++i) {
    sum += cut(std::int64_t{a[i].mantissa} * b[i].mantissa, a[i].raw + b[i].raw - 2 * fraction_bits, unit);
  }
  return rounded(sum, unit);
}

Nvfp4Row nvfp4_row(const std::uint8_t* codes, const std::uint8_t* scales) {
  constexpr std::array<std::int16_t, 8> halves = {0, 1, 2, 3, 4, 6, 8, 12};
  constexpr std::int16_t of_zero = -40;
  constexpr std::array<std::int16_t, 8> raw = {of_zero, 0, 0, 0, 1, 1, 2, 2};
  Nvfp4Row row{};
  for (std::uint32_t i = 0; i < nvfp4_k; ++i) {
    const std::uint32_t code = codes[i / 2] >> (i % 2 * 4) & 0xFU;
    const std::int16_t value = halves[code & 7U];
    row.halves[nvfp4_place(i)] = static_cast<std::int16_t>((code & 8U) != 0 ? -value : value);
    row.raw[nvfp4_place(i)] = raw[code & 7U];
  }
  for (std::uint32_t i = 0; i < nvfp4_scales; ++i) {
    const TensorElement scale = decode<4, 3, false>(scales[i] & 0x7FU);
    row.has_nan_scale = row.has_nan_scale || scale.is_nan;
    row.mantissa[i] = static_cast<std::int16_t>(scale.mantissa);
    row.exponent[i] = scale.raw;
  }
  return row;
}

namespace {

/// The sums of the groups of two rows, before their scales.
struct Nvfp4Groups {
  std::array<std::int16_t, nvfp4_groups> sum;  ///< of products of halves
  std::array<std::int16_t, nvfp4_groups> raw;  ///< the maximum exponent of a product; below 0 where all are zero
};

/// Written so that compilers generate a few instructions for all groups.
Nvfp4Groups multiply_groups(const Nvfp4Row& a, const Nvfp4Row& b) {
  Nvfp4Groups groups;
  for (std::uint32_t g = 0; g < nvfp4_groups; ++g) {
    const auto product = [&](std::uint32_t i) {
      return a.halves[i * nvfp4_groups + g] * b.halves[i * nvfp4_groups + g];
    };
    const auto raw = [&](std::uint32_t i) {
      return static_cast<std::int16_t>(a.raw[i * nvfp4_groups + g] + b.raw[i * nvfp4_groups + g]);
    };
    groups.sum[g] = static_cast<std::int16_t>(product(0) + product(1) + product(2) + product(3));
    groups.raw[g] = std::max(std::max(raw(0), raw(1)), std::max(raw(2), raw(3)));
  }
  return groups;
}

}  // namespace

std::uint32_t nvfp4_dot(const Nvfp4Row& a, const Nvfp4Row& b, std::uint32_t c) {
  constexpr std::uint32_t groups_of_scale = nvfp4_groups / nvfp4_scales;
  // Products of halves have two bits of fraction, those of scales have six.
  constexpr int fraction_bits = 2 + 2 * 3;
  const TensorElement sum_before = decode_float(c);
  if (a.has_nan_scale || b.has_nan_scale || sum_before.is_nan) {
    return nan_word;
  }
  if (sum_before.is_infinite) {
    return c;
  }
  const Nvfp4Groups groups = multiply_groups(a, b);
  std::array<std::int32_t, nvfp4_groups> sums{};
  int products = no_exponent;  // the maximum raw exponent of a nonzero product
  int scales = no_exponent;    // and of its scales
  for (std::uint32_t s = 0; s < nvfp4_scales; ++s) {
    const std::int32_t mantissa = std::int32_t{a.mantissa[s]} * b.mantissa[s];
    if (mantissa == 0) {
      continue;
    }
    const int pair = a.exponent[s] + b.exponent[s];
    int greatest = -1;
    for (std::uint32_t g = s * groups_of_scale; g < (s + 1) * groups_of_scale; ++g) {
      sums[g] = groups.sum[g] * mantissa;
      greatest = std::max(greatest, int{groups.raw[g]});
    }
    if (greatest >= 0) {
      scales = std::max(scales, pair);
      products = std::max(products, pair + greatest);
    }
  }
  if (products == no_exponent) {
    return c;
  }
  const bool has_sum = sum_before.mantissa != 0;
  const bool sum_leads = has_sum && sum_before.raw >= products;
  const int unit = sum_leads
                       ? sum_before.raw - 35
                       : std::max(std::max(products, has_sum ? int{sum_before.raw} : no_exponent) - 39, scales - 35);
  std::int64_t sum = cut(sum_before.mantissa, sum_before.raw - float_fraction_bits, unit);
  for (std::uint32_t s = 0; s < nvfp4_scales; ++s) {
    const int exponent = a.exponent[s] + b.exponent[s] - fraction_bits;
    const auto first = sums.begin() + s * groups_of_scale;
    if (sum_leads) {
      sum += cut(std::int64_t{first[0]} + first[1] + first[2] + first[3], exponent, unit);
      continue;
    }
    for (std::uint32_t g = 0; g < groups_of_scale; ++g) {
      sum += cut(first[g], exponent, unit);
    }
  }
  return rounded(sum, unit);
}

namespace {

float value_of(const TensorElement& element, int fraction_bits) {
  if (element.is_nan) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (element.is_infinite) {
    return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(element.mantissa));
  }
  return std::ldexp(static_cast<float>(element.mantissa), element.raw - fraction_bits);
}

std::uint32_t dot_in_float32(const TensorElement* a, const TensorElement* b, std::uint32_t count, int fraction_bits,
                             std::uint32_t c) {
  auto sum = std::bit_cast<float>(c);
  for (std::uint32_t i = 0; i < count; ++i) {
    sum += value_of(a[i], fraction_bits) * value_of(b[i], fraction_bits);
  }
  return std::bit_cast<std::uint32_t>(sum);
}

/// A product with its two scales is exact in float32.
std::uint32_t nvfp4_dot_in_float32(const Nvfp4Row& a, const Nvfp4Row& b, std::uint32_t c) {
  if (a.has_nan_scale || b.has_nan_scale) {
    return nan_word;
  }
  constexpr std::uint32_t block = nvfp4_k / nvfp4_scales;
  constexpr int fraction_bits = 2 + 2 * 3;  // of two halves and of two scales
  auto sum = std::bit_cast<float>(c);
  for (std::uint32_t s = 0; s < nvfp4_scales; ++s) {
    const auto mantissa = static_cast<float>(std::int32_t{a.mantissa[s]} * b.mantissa[s]);
    const float scale = std::ldexp(mantissa, a.exponent[s] + b.exponent[s] - fraction_bits);
    for (std::uint32_t i = s * block; i < (s + 1) * block; ++i) {
      const std::uint32_t place = nvfp4_place(i);
      sum += static_cast<float>(std::int32_t{a.halves[place]} * b.halves[place]) * scale;
    }
  }
  return std::bit_cast<std::uint32_t>(sum);
}

}  // namespace

TensorArithmetic tensor_arithmetic(TensorSums sums) {
  return sums == TensorSums::float32 ? TensorArithmetic{dot_in_float32, nvfp4_dot_in_float32}
                                     : TensorArithmetic{tensor_dot, nvfp4_dot};
}

}  // namespace thresher::emulator
