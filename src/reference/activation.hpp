#pragma once
/// The activations, in float64 and in float32.
#include <algorithm>
#include <cmath>
#include <optional>

#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

template <typename Real>
Real sigmoid(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

/// g·σ(g): NaN at -Inf, where σ is 0.
template <typename Real>
Real silu(Real gate) {
  return gate * sigmoid(gate);
}

/// ½g(1 + tanh z) = g·σ(2z), the form without cancellation for negative g.
template <typename Real>
Real gelu_tanh(Real gate) {
  const Real sqrt_2_over_pi = Real(0.79788456080286535588L);
  const Real inner = sqrt_2_over_pi * (gate + Real(0.044715L) * gate * gate * gate);
  return gate * sigmoid(Real(2) * inner);
}

/// A NaN gate or up stays NaN: std::min and std::clamp return their first argument when no comparison is true.
template <typename Real>
Real swiglu_clamped(Real gate, Real up, const Activation& activation) {
  const Real limit = Real(activation.limit);
  const Real clamped_gate = std::min(gate, limit);
  const Real clamped_up = std::clamp(up, -limit, limit);
  return clamped_gate * sigmoid(Real(activation.alpha) * clamped_gate) * (clamped_up + Real(activation.up_offset));
}

/// x without a bend near 0, and never beyond ±limit.
template <typename Real>
Real soft_limit(Real x, Real limit) {
  return limit * std::tanh(x / limit);
}

template <typename Real>
Real situ(Real gate, Real up, const Activation& activation) {
  return soft_limit(gate, Real(activation.alpha)) * sigmoid(gate) * soft_limit(up, Real(activation.limit));
}

/// max(x, 0)²; a NaN stays NaN.
template <typename Real>
Real relu2(Real x) {
  return x < Real(0) ? Real(0) : x * x;
}

template <typename Real>
Real activate(Real gate, Real up, const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::silu: return silu(gate) * up;
    case ActivationKind::gelu_tanh: return gelu_tanh(gate) * up;
    case ActivationKind::swiglu_clamped: return swiglu_clamped(gate, up, activation);
    case ActivationKind::situ: return situ(gate, up, activation);
    case ActivationKind::relu2: return relu2(gate);
  }
  return Real(0);
}

/// An output before it is rounded; without an activation and with relu2 there is no up.
template <typename Real>
Real unrounded(Real gate, Real up, const std::optional<Activation>& activation, Real row_weight) {
  return (activation ? activate(gate, up, *activation) : gate) * row_weight;
}

/// The definition of one output element from its gate and up. float32 decides where NaN and Inf occur, because every
/// backend's intermediates are float32. float64 gives every finite value.
inline double output_element(double gate, double up, const std::optional<Activation>& activation,
                             double row_weight = 1) {
  const float in_float32 =
      unrounded(static_cast<float>(gate), static_cast<float>(up), activation, static_cast<float>(row_weight));
  return std::isfinite(in_float32) ? unrounded(gate, up, activation, row_weight) : static_cast<double>(in_float32);
}

}  // namespace thresher::reference
