#pragma once
/// activation(gate)·up in float32.
#include "machine/numbers.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

using namespace machine;

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

/// `params` has alpha, limit and up_offset.
template <ActivationCode activation, class Params>
TH_DEVICE float activate(float gate, float up, const Params& params) {
  if constexpr (activation == ActivationCode::silu) {
    return swish(gate, 1.0F) * up;
  } else if constexpr (activation == ActivationCode::gelu_tanh) {
    return gelu_tanh(gate) * up;
  } else {
    // Comparisons, not min and max: a NaN stays.
    const float g = gate > params.limit ? params.limit : gate;
    const float u = up > params.limit ? params.limit : up < -params.limit ? -params.limit : up;
    return swish(g, params.alpha) * (u + params.up_offset);
  }
}

}  // namespace thresher::strategies::gemm
