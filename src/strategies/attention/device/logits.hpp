#pragma once
/// From dot products to exponents of two, and to a row's factor and LSE.
///
/// Everything is in base 2: weight = 2^(logit·log2(e) − running_max). The running maximum is kept finite. Any finite
/// maximum gives the defined quotient, so −Inf (no key yet, or only −Inf) needs no special case.
#include "strategies/attention/device/work.hpp"

namespace thresher::strategies::attention {

inline constexpr float largest_float = 3.40282347e38F;
inline constexpr float natural_log_of_2 = 0.693147182F;
inline constexpr float log2_of_e = 1.44269504F;

TH_DEVICE float minus_infinity() { return convert::bits_float(0xFF800000U); }

TH_DEVICE float finite(float value) { return math::max(math::min(value, largest_float), -largest_float); }

/// tanh to float32 accuracy; tanh_approx has 2^-11 only.
TH_DEVICE float accurate_tanh(float x) {
  // tanh|x| = (1 − e)/(1 + e), e = 2^(−2·log2(e)·|x|); where that cancels, the first terms of the series.
  const float size = math::max(x, -x);
  const float e = math::exp2_approx(-2.88539004F * size);
  const float square = x * x;
  const float series =
      size * math::fma(square, math::fma(square, math::fma(square, -0.0539682540F, 0.133333333F), -0.333333333F), 1.0F);
  const float result = size < 0.25F ? series : (1.0F - e) / (1.0F + e);
  return x < 0.0F ? -result : x != x ? x : result;
}

/// The exponent of a dot product, as `general` needs it.
TH_DEVICE float exponent(const Params& params, float dot) {
  return params.inner_scale == 0.0F ? dot * params.scale_log2
                                    : params.scale_log2 * accurate_tanh(dot * params.inner_scale);
}

/// Natural logarithm of the sum of exponentials.
TH_DEVICE float lse_of(float running_max, float sum) {
  return (running_max + math::log2_approx(sum)) * natural_log_of_2;
}

/// The effect of one more key on a row: the factor of its accumulators so far, and the key's weight.
struct KeyWeight {
  float factor;
  float weight;
};

/// Adds a key of this exponent to a row's running maximum and sum.
TH_DEVICE KeyWeight add_key(float& running_max, float& sum, float power) {
  const float new_max = finite(math::max(running_max, power));
  const float factor = math::exp2_approx(running_max - new_max);
  const float weight = math::exp2_approx(power - new_max);
  running_max = new_max;
  sum = math::fma(sum, factor, weight);
  return {factor, weight};
}

/// The factor that makes a row's accumulators its output, and the row's LSE.
struct RowEnd {
  float factor;
  float lse;
};

/// The head's attention sink is added to the sum. A row that sees no key has output 0, and its LSE is the sink.
TH_DEVICE RowEnd end_row(const Params& params, i32 head, float running_max, float sum, bool sees) {
  float common = running_max;
  float total = sum;
  if (params.sinks != 0) {
    const float sink = Global<float>{params.sinks}.load(head * params.sinks_stride) * log2_of_e;
    common = finite(math::max(running_max, sink));
    total = math::fma(sum, math::exp2_approx(running_max - common), math::exp2_approx(sink - common));
  }
  return {sees ? math::exp2_approx(running_max - common) * math::reciprocal_approx(total) : 0.0F,
          sees || params.sinks != 0 ? lse_of(common, total) : minus_infinity()};
}

}  // namespace thresher::strategies::attention
