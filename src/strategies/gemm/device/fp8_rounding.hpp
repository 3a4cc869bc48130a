#pragma once
/// The arithmetic of quantization to FP8 by lanes of a warp. The result is that of the definition,
/// `formats::quantize_row`, bit by bit.
#include "machine/numbers.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/device/number_type.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

struct Division {
  float divisor;
  TH_DEVICE float operator()(float x) const { return x / divisor; }
};

/// Divides a value of 16 bits by a scale that fp8_scale gave. The quotient may differ from x / scale in its last bit,
/// but no midpoint between two e4m3 values lies there, and the signs of zeros are equal.
class FastDivision {
 public:
  explicit TH_DEVICE FastDivision(float scale)
      : lift_(scale < 0x1p-60F ? 0x1p64F : 1.0F),  // remainders are then far from subnormal numbers
        inverse_(math::reciprocal_approx(scale * lift_)),
        scale_(inverse_ == 0.0F ? 0.0F : scale * lift_) {}  // quotients by infinity need no correction

  TH_DEVICE float operator()(float x) const {
    const float lifted = x * lift_;
    const float quotient = lifted * inverse_;
    const float excess = math::fma(scale_, quotient, -lifted);
    return math::fma(excess, -inverse_, quotient);
  }

 private:
  float lift_;
  float inverse_;
  float scale_;
};

/// The scale of values of this maximum magnitude.
TH_DEVICE float fp8_scale(float amax, u32 powers_of_two) {
  float scale = math::max(amax / 448.0F, 0x1p-126F);
  if (powers_of_two != 0) {
    scale = convert::bits_float((convert::float_bits(scale) + 0x7FFFFFU) & 0x7F800000U);
  }
  return amax == 0.0F ? 1.0F : scale;
}

/// The same in so many neighbouring lanes; all lanes of the warp call it.
template <u32 lanes>
TH_DEVICE float largest_of_lanes(float amax) {
  TH_UNROLL
  for (u32 mask = 1; mask < lanes; mask *= 2) {
    amax = math::max(amax, warp::shuffle_xor(amax, mask));
  }
  return amax;
}

/// The values that a lane reads at once, 16 bytes.
template <Number number>
struct LaneValues {
  using Element = typename NumberType<number>::type;
  static constexpr u32 width = 16 / sizeof(Element);
  float at[width];

  explicit TH_DEVICE LaneValues(const Vector<u32, 4>& words) {
    TH_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      if constexpr (number == Number::fp32) {
        at[i] = convert::bits_float(words.at[i]);
      } else {
        at[2 * i] = convert::to_float(Element{static_cast<u16>(words.at[i] & 0xFFFFU)});
        at[2 * i + 1] = convert::to_float(Element{static_cast<u16>(words.at[i] >> 16)});
      }
    }
  }

  TH_DEVICE float largest() const {
    float amax = math::abs(at[0]);
    TH_UNROLL
    for (u32 i = 1; i < width; ++i) {
      amax = math::max(amax, math::abs(at[i]));
    }
    return amax;
  }

  /// Their quotients in FP8.
  template <class Quotient>
  TH_DEVICE Vector<u32, width / 4> e4m3(const Quotient& by) const {
    Vector<u32, width / 4> quotients;
    TH_UNROLL
    for (u32 i = 0; i < width; i += 4) {
      quotients.at[i / 4] = convert::floats_to_e4m3x2(by(at[i]), by(at[i + 1])) |
                            static_cast<u32>(convert::floats_to_e4m3x2(by(at[i + 2]), by(at[i + 3]))) << 16;
    }
    return quotients;
  }
};

}  // namespace thresher::strategies::gemm
