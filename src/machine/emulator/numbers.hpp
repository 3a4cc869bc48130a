#pragma once
/// Arithmetic in the emulator, with the host's library and the conversions of formats/.
#include <cmath>

#include "formats/numbers.hpp"
#include "machine/numbers.hpp"

namespace thresher::machine {

namespace math {
namespace emulated {
inline float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }
}  // namespace emulated

inline float exp2_approx(float x) { return emulated::flush(std::exp2(emulated::flush(x))); }
inline float log2_approx(float x) { return std::log2(x); }
inline float reciprocal_approx(float x) { return emulated::flush(1.0F / emulated::flush(x)); }
inline float tanh_approx(float x) { return std::tanh(x); }
inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline float abs(float x) { return std::fabs(x); }
inline float min(float a, float b) { return std::fmin(a, b); }
}  // namespace math

namespace convert {
inline float to_float(Half value) { return formats::fp16_to_float(value.bits); }
inline float to_float(BFloat16 value) { return formats::bf16_to_float(value.bits); }
inline Half to_half(float value) { return {formats::float_to_fp16(value)}; }
inline BFloat16 to_bfloat16(float value) { return {formats::float_to_bf16(value)}; }

namespace emulated {
inline u16 narrow(float value, Half) { return to_half(value).bits; }
inline u16 narrow(float value, BFloat16) { return to_bfloat16(value).bits; }
template <typename Element>
float low(u32 word) {
  return to_float(Element{static_cast<u16>(word)});
}
template <typename Element>
float high(u32 word) {
  return to_float(Element{static_cast<u16>(word >> 16)});
}
}  // namespace emulated

template <typename Element>
u32 pack(float low, float high) {
  return emulated::narrow(low, Element{}) | static_cast<u32>(emulated::narrow(high, Element{})) << 16;
}

inline u32 e4m3x2_to_half2(u16 codes) {
  return pack<Half>(formats::e4m3_to_float(static_cast<u8>(codes)),
                    formats::e4m3_to_float(static_cast<u8>(codes >> 8)));
}
inline u16 floats_to_e4m3x2(float low, float high) {
  return static_cast<u16>(formats::float_to_e4m3(low) | formats::float_to_e4m3(high) << 8);
}
inline u16 half2_to_e4m3x2(u32 halves) {
  return floats_to_e4m3x2(emulated::low<Half>(halves), emulated::high<Half>(halves));
}
inline u32 float_bits(float value) { return __builtin_bit_cast(u32, value); }
inline float bits_float(u32 bits) { return __builtin_bit_cast(float, bits); }
}  // namespace convert

namespace packed {
namespace emulated {

/// p + c in double precision; its last bit is set if the sum is inexact, so that a later rounding to fewer bits is the
/// only one.
inline double sum_to_odd(double p, double c) {
  const double sum = p + c;
  const double c_part = sum - p;
  const double lost = (p - (sum - c_part)) + (c - c_part);
  if (lost != 0 && std::isfinite(sum) && (__builtin_bit_cast(u64, sum) & 1U) == 0) {
    return std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
  }
  return sum;
}

inline float float_to_odd(double value) {
  const float rounded = static_cast<float>(value);
  if (std::isfinite(rounded) && static_cast<double>(rounded) != value && (convert::float_bits(rounded) & 1U) == 0) {
    return std::nextafter(rounded, value > static_cast<double>(rounded) ? HUGE_VALF : -HUGE_VALF);
  }
  return rounded;
}

/// a·b + c of both halves, rounded once; a product of two 16-bit values is exact in double precision.
template <typename Element>
u32 multiply_add(u32 a, u32 b, u32 c) {
  namespace from = convert::emulated;
  const auto one = [](double x, double y, double z) { return float_to_odd(sum_to_odd(x * y, z)); };
  return convert::pack<Element>(one(from::low<Element>(a), from::low<Element>(b), from::low<Element>(c)),
                                one(from::high<Element>(a), from::high<Element>(b), from::high<Element>(c)));
}

template <typename Element>
u32 constant(float value) {
  return convert::pack<Element>(value, value);
}

}  // namespace emulated

/// Adding −0 changes nothing, not even the sign of a zero.
template <typename Element>
u32 multiply(u32 a, u32 b) {
  return emulated::multiply_add<Element>(a, b, emulated::constant<Element>(-0.0F));
}
template <typename Element>
u32 add(u32 a, u32 b) {
  return emulated::multiply_add<Element>(a, emulated::constant<Element>(1.0F), b);
}
template <typename Element>
u32 fma(u32 a, u32 b, u32 c) {
  return emulated::multiply_add<Element>(a, b, c);
}
template <int half>
u32 broadcast(u32 word) {
  return (word >> (16 * half) & 0xFFFFU) * 0x10001U;
}
}  // namespace packed

namespace bits {
inline u32 permute(u32 a, u32 b, u32 selector) {
  const u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 nibble = selector >> (4 * i) & 0xFU;
    const u32 byte = static_cast<u32>(bytes >> (8 * (nibble & 7U))) & 0xFFU;
    result |= ((nibble & 8U) != 0 ? ((byte & 0x80U) != 0 ? 0xFFU : 0U) : byte) << (8 * i);
  }
  return result;
}
template <u8 table>
u32 logic3(u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (u32 i = 0; i < 8; ++i) {
    if ((table >> i & 1U) != 0) {
      result |= ((i & 4U) != 0 ? a : ~a) & ((i & 2U) != 0 ? b : ~b) & ((i & 1U) != 0 ? c : ~c);
    }
  }
  return result;
}
inline u32 funnel_left(u32 low, u32 high, u32 shift) {
  const u64 both = static_cast<u64>(high) << 32 | low;
  return static_cast<u32>(both << (shift & 31U) >> 32);
}
inline u32 multiply_add(u32 a, u32 b, u32 c) { return a * b + c; }
inline u32 count_ones(u32 value) { return static_cast<u32>(__builtin_popcount(value)); }
}  // namespace bits

}  // namespace thresher::machine
