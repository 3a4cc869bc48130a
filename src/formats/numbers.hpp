#pragma once
/// Conversions between float32 and the narrow formats, on bit patterns. Conversion to float32 is exact. Conversion from
/// float32 rounds once, to nearest even, and is correct for every pattern in the default rounding mode.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace thresher::formats {

namespace detail {

inline constexpr std::uint32_t infinity_bits = 0x7F800000U;

/// A binary format narrower than float32: `mantissa_bits` of fraction and an exponent biased by `bias`.
struct Layout {
  int mantissa_bits;
  int bias;
};

inline constexpr Layout fp16_layout{10, 15};
inline constexpr Layout e4m3_layout{3, 7};
inline constexpr Layout e2m1_layout{1, 1};

/// `magnitude` is float32 bits without the sign, finite or not. Returns the code as if the exponent had no upper limit:
/// the caller saturates it or turns it into Inf.
template <Layout to>
constexpr std::uint32_t round_magnitude(std::uint32_t magnitude) noexcept {
  constexpr int dropped_bits = 23 - to.mantissa_bits;
  constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - to.bias) << 23;
  if (magnitude >= smallest_normal) {
    constexpr std::uint32_t below_half = (1U << (dropped_bits - 1)) - 1U;
    constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - to.bias) << 23;
    const std::uint32_t odd = (magnitude >> dropped_bits) & 1U;
    return (magnitude - rebias + below_half + odd) >> dropped_bits;
  }
  // `aligner` is the power of two whose last place is the target's smallest subnormal. So one float32 addition rounds
  // to a whole number of those, ties to even.
  constexpr std::uint32_t aligner = static_cast<std::uint32_t>(127 + 24 - to.bias - to.mantissa_bits) << 23;
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(aligner)) - aligner;
}

/// The float32 bits of a finite code without its sign.
template <Layout from>
constexpr std::uint32_t widen_magnitude(std::uint32_t code) noexcept {
  constexpr int added_bits = 23 - from.mantissa_bits;
  if ((code >> from.mantissa_bits) != 0) {
    return (code << added_bits) + (static_cast<std::uint32_t>(127 - from.bias) << 23);
  }
  constexpr std::uint32_t smallest_subnormal = static_cast<std::uint32_t>(128 - from.bias - from.mantissa_bits) << 23;
  return std::bit_cast<std::uint32_t>(static_cast<float>(code) * std::bit_cast<float>(smallest_subnormal));
}

}  // namespace detail

/// Inf stays Inf; NaN stays NaN with its payload.
constexpr float fp16_to_float(std::uint16_t pattern) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(pattern & 0x8000U) << 16;
  const std::uint32_t code = pattern & 0x7FFFU;
  if (code >= 0x7C00U) {
    return std::bit_cast<float>(sign | detail::infinity_bits | ((code & 0x3FFU) << 13));
  }
  return std::bit_cast<float>(sign | detail::widen_magnitude<detail::fp16_layout>(code));
}

/// From 65520 up it is Inf; NaN stays a (quiet) NaN with its sign.
constexpr std::uint16_t float_to_fp16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > detail::infinity_bits) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  const std::uint32_t code = detail::round_magnitude<detail::fp16_layout>(magnitude);
  return static_cast<std::uint16_t>(sign | (code < 0x7C00U ? code : 0x7C00U));
}

constexpr float bf16_to_float(std::uint16_t pattern) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(pattern) << 16);
}

/// Overflows to Inf; NaN stays a (quiet) NaN with its sign.
constexpr std::uint16_t float_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > detail::infinity_bits) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x0040U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline constexpr float e4m3_max = 448.0F;

/// 0x7F and 0xFF are NaN; there is no Inf.
constexpr float e4m3_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const std::uint32_t magnitude = code & 0x7FU;
  if (magnitude == 0x7FU) {
    return std::bit_cast<float>(sign | 0x7FC00000U);
  }
  return std::bit_cast<float>(sign | detail::widen_magnitude<detail::e4m3_layout>(magnitude));
}

/// Saturates at ±448, Inf included; NaN becomes 0x7F with its sign.
constexpr std::uint8_t float_to_e4m3(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > detail::infinity_bits) {
    return static_cast<std::uint8_t>(sign | 0x7FU);
  }
  const std::uint32_t code = detail::round_magnitude<detail::e4m3_layout>(magnitude);
  return static_cast<std::uint8_t>(sign | (code < 0x7EU ? code : 0x7EU));
}

constexpr bool is_e4m3_nan(std::uint8_t code) noexcept { return (code & 0x7FU) == 0x7FU; }

inline constexpr float e2m1_max = 6.0F;

/// ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}; only the low 4 bits of `code` count, bit 3 is the sign.
constexpr float e2m1_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8U) << 28;
  return std::bit_cast<float>(sign | detail::widen_magnitude<detail::e2m1_layout>(code & 0x7U));
}

/// Saturates at ±6, Inf included. The format has no NaN: a NaN becomes ±6, so callers reject it before.
constexpr std::uint8_t float_to_e2m1(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 28) & 0x8U;
  const std::uint32_t code = detail::round_magnitude<detail::e2m1_layout>(bits & 0x7FFFFFFFU);
  return static_cast<std::uint8_t>(sign | (code < 0x7U ? code : 0x7U));
}

/// e4m3_to_float of every code.
inline constexpr std::array<float, 256> e4m3_values = [] {
  std::array<float, 256> values{};
  for (std::size_t code = 0; code < values.size(); ++code) {
    values[code] = e4m3_to_float(static_cast<std::uint8_t>(code));
  }
  return values;
}();

/// e2m1_to_float of every code.
inline constexpr std::array<float, 16> e2m1_values = [] {
  std::array<float, 16> values{};
  for (std::size_t code = 0; code < values.size(); ++code) {
    values[code] = e2m1_to_float(static_cast<std::uint8_t>(code));
  }
  return values;
}();

}  // namespace thresher::formats
