#pragma once
/// activation(gate)·up in float32, and relu2 of one matrix.
#include "machine/numbers.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

TH_DEVICE float sigmoid(float x) {
  constexpr float log2_e = 1.4426950408889634F;
  return math::reciprocal_approx(1.0F + math::exp2_approx(-log2_e * x));
}

/// x·σ(alpha·x): NaN for −∞, as the definition gives.
TH_DEVICE float swish(float x, float alpha) {
  constexpr float log2_e = 1.4426950408889634F;
  return x * math::reciprocal_approx(1.0F + math::exp2_approx(-alpha * log2_e * x));
}

/// ½x(1 + tanh(y)), y = √(2/π)(x + 0.044715 x³), is x·σ(2y).
TH_DEVICE float gelu_tanh(float x) {
  constexpr float two_log2_e = 2.8853900817779268F;
  constexpr float root = 0.7978845608028654F;
  const float y = root * (x + 0.044715F * x * x * x);
  return x * math::reciprocal_approx(1.0F + math::exp2_approx(-two_log2_e * y));
}

/// limit·tanh(x / limit) within 3·2⁻²⁴ relative: near 0 by a polynomial, since 1 − 2σ would cancel there.
TH_DEVICE float soft_limit(float x, float limit) {
  constexpr float two_log2_e = 2.8853900817779268F;
  const float part = x * math::reciprocal_approx(limit);
  const float squared = part * part;
  float factor = -0.0062691197F;
  factor = math::fma(factor, squared, 0.021110959F);
  factor = math::fma(factor, squared, -0.053873949F);
  factor = math::fma(factor, squared, 0.13332915F);
  factor = math::fma(factor, squared, -0.3333333F);
  const float near_0 = math::fma(x * squared, factor, x);
  const float sigmoid_of_less = math::reciprocal_approx(1.0F + math::exp2_approx(two_log2_e * math::abs(part)));
  const float size = math::fma(-2.0F * limit, sigmoid_of_less, limit);
  return part > 0.6F ? size : part < -0.6F ? -size : near_0;
}

/// `params` has alpha, limit and up_offset.
template <ActivationCode activation, class Params>
TH_DEVICE float activate(float gate, float up, const Params& params) {
  if constexpr (activation == ActivationCode::silu) {
    return swish(gate, 1.0F) * up;
  } else if constexpr (activation == ActivationCode::gelu_tanh) {
    return gelu_tanh(gate) * up;
  } else if constexpr (activation == ActivationCode::situ) {
    return soft_limit(gate, params.alpha) * sigmoid(gate) * soft_limit(up, params.limit);
  } else {
    static_assert(activation == ActivationCode::swiglu_clamped);
    // Comparisons, not min and max: a NaN stays.
    const float g = gate > params.limit ? params.limit : gate;
    const float u = up > params.limit ? params.limit : up < -params.limit ? -params.limit : up;
    return swish(g, params.alpha) * (u + params.up_offset);
  }
}

/// An output of one matrix: relu2 of it, or itself. A NaN stays.
template <ActivationCode activation>
TH_DEVICE float activate_one(float value) {
  return activation != ActivationCode::relu2 ? value : value < 0.0F ? 0.0F : value * value;
}

}  // namespace thresher::strategies::gemm
