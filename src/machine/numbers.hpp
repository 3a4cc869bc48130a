#pragma once
/// Arithmetic that maps to one or two instructions: approximate functions, packed 16-bit halves, conversions, bit
/// operations.
///
/// A packed word holds two 16-bit values, the first in its low half. "approx" functions flush subnormal results to zero
/// where documented; otherwise they are within 2 units in the last place. The emulator computes them with the host's
/// library.
#include "machine/types.hpp"

namespace thresher::machine {

namespace math {
/// 2^x; subnormal inputs and results are flushed.
TH_DEVICE float exp2_approx(float x);
/// Base 2 logarithm, within 2^-22 absolute.
TH_DEVICE float log2_approx(float x);
/// 1/x; subnormal inputs and results are flushed.
TH_DEVICE float reciprocal_approx(float x);
/// tanh, within 2^-11 relative.
TH_DEVICE float tanh_approx(float x);
/// a·b + c, one rounding.
TH_DEVICE float fma(float a, float b, float c);
/// When one operand is NaN the other is returned, as in fmaxf and fminf.
TH_DEVICE float max(float a, float b);
TH_DEVICE float min(float a, float b);
TH_DEVICE float abs(float x);
}  // namespace math

namespace convert {
TH_DEVICE float to_float(Half value);
TH_DEVICE float to_float(BFloat16 value);
/// Rounds to nearest even; beyond the largest finite value gives infinity.
TH_DEVICE Half to_half(float value);
TH_DEVICE BFloat16 to_bfloat16(float value);
/// Both at once into a packed word; Element is Half or BFloat16.
template <typename Element>
TH_DEVICE u32 pack(float low, float high);
/// Two e4m3 values (low byte first) to a packed word of halves, exact; and back, rounded to nearest even, saturating at
/// 448.
TH_DEVICE u32 e4m3x2_to_half2(u16 codes);
TH_DEVICE u16 half2_to_e4m3x2(u32 halves);
TH_DEVICE u16 floats_to_e4m3x2(float low, float high);
TH_DEVICE u32 float_bits(float value);
TH_DEVICE float bits_float(u32 bits);
}  // namespace convert

namespace packed {
/// Element-wise on packed words; Element is Half or BFloat16. Rounds to nearest even, subnormals kept.
template <typename Element>
TH_DEVICE u32 multiply(u32 a, u32 b);
template <typename Element>
TH_DEVICE u32 add(u32 a, u32 b);
template <typename Element>
TH_DEVICE u32 fma(u32 a, u32 b, u32 c);
/// The low (0) or high (1) half of a word in both halves; free as an operand of the functions above.
template <int half>
TH_DEVICE u32 broadcast(u32 word);
}  // namespace packed

namespace bits {
/// Byte i of the result is byte (selector nibble i & 7) of {b:a}; nibble bit 3 replicates that byte's sign instead.
TH_DEVICE u32 permute(u32 a, u32 b, u32 selector);
/// Any function of three bits, `table` = f(0xF0, 0xCC, 0xAA).
template <u8 table>
TH_DEVICE u32 logic3(u32 a, u32 b, u32 c);
/// The upper word of {high:low} << (shift & 31).
TH_DEVICE u32 funnel_left(u32 low, u32 high, u32 shift);
/// a·b + c modulo 2^32: a left shift on the multiplier's pipe.
TH_DEVICE u32 multiply_add(u32 a, u32 b, u32 c);
TH_DEVICE u32 count_ones(u32 value);
}  // namespace bits

}  // namespace thresher::machine

#if TH_GPU
#include "machine/ptx/numbers.hpp"
#else
#include "machine/emulator/numbers.hpp"
#endif
