#pragma once
/// Arithmetic on the GPU.
#include "machine/numbers.hpp"

namespace thresher::machine {

namespace math {

TH_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TH_DEVICE float log2_approx(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TH_DEVICE float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TH_DEVICE float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TH_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TH_DEVICE float max(float a, float b) { return fmaxf(a, b); }
TH_DEVICE float min(float a, float b) { return fminf(a, b); }
TH_DEVICE float abs(float x) { return fabsf(x); }

}  // namespace math

namespace convert {

TH_DEVICE float to_float(Half value) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(value.bits));
  return y;
}

TH_DEVICE float to_float(BFloat16 value) { return __uint_as_float(static_cast<u32>(value.bits) << 16); }

TH_DEVICE Half to_half(float value) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(value));
  return {y};
}

TH_DEVICE BFloat16 to_bfloat16(float value) {
  u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(value));
  return {y};
}

template <>
TH_DEVICE u32 pack<Half>(float low, float high) {
  u32 y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

template <>
TH_DEVICE u32 pack<BFloat16>(float low, float high) {
  u32 y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

TH_DEVICE u32 e4m3x2_to_half2(u16 codes) {
  u32 y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(codes));
  return y;
}

TH_DEVICE u16 half2_to_e4m3x2(u32 halves) {
  u16 y;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(y) : "r"(halves));
  return y;
}

TH_DEVICE u16 floats_to_e4m3x2(float low, float high) {
  u16 y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
  return y;
}

TH_DEVICE u32 float_bits(float value) { return __float_as_uint(value); }
TH_DEVICE float bits_float(u32 bits) { return __uint_as_float(bits); }

}  // namespace convert

namespace packed {

template <>
TH_DEVICE u32 multiply<Half>(u32 a, u32 b) {
  u32 y;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
TH_DEVICE u32 multiply<BFloat16>(u32 a, u32 b) {
  u32 y;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
TH_DEVICE u32 add<Half>(u32 a, u32 b) {
  u32 y;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
TH_DEVICE u32 add<BFloat16>(u32 a, u32 b) {
  u32 y;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
TH_DEVICE u32 fma<Half>(u32 a, u32 b, u32 c) {
  u32 y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}
template <>
TH_DEVICE u32 fma<BFloat16>(u32 a, u32 b, u32 c) {
  u32 y;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}

// Through 16-bit registers, so that the assembler folds it into its user's operand (.H0_H0, .H1_H1).
template <>
TH_DEVICE u32 broadcast<0>(u32 word) {
  u32 y;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {low, low}; }" : "=r"(y) : "r"(word));
  return y;
}
template <>
TH_DEVICE u32 broadcast<1>(u32 word) {
  u32 y;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, high}; }" : "=r"(y) : "r"(word));
  return y;
}

}  // namespace packed

namespace bits {

TH_DEVICE u32 permute(u32 a, u32 b, u32 selector) {
  u32 y;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(selector));
  return y;
}

template <u8 table>
TH_DEVICE u32 logic3(u32 a, u32 b, u32 c) {
  u32 y;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(y) : "r"(a), "r"(b), "r"(c), "n"(table));
  return y;
}

TH_DEVICE u32 funnel_left(u32 low, u32 high, u32 shift) { return __funnelshift_l(low, high, shift); }

TH_DEVICE u32 multiply_add(u32 a, u32 b, u32 c) {
  u32 y;
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
}

TH_DEVICE u32 count_ones(u32 value) { return static_cast<u32>(__popc(value)); }

}  // namespace bits

}  // namespace thresher::machine
