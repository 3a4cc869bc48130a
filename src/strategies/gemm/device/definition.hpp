#pragma once
/// The activations as src/reference/activation.hpp defines them, for kernels that value agreement with it above speed.
/// The file also has what these kernels need to decode operands one element at a time.
#include "machine/global.hpp"
#include "machine/math.hpp"
#include "machine/numbers.hpp"
#include "machine/types.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm::definition {

using namespace machine;

/// Those of swiglu_clamped; situ has alpha and limit.
struct ActivationConstants {
  float alpha;
  float limit;
  float up_offset;
};

template <typename Real>
TH_DEVICE Real sigmoid(Real x) {
  return Real(1) / (Real(1) + math::exp(-x));
}

/// ½g(1 + tanh z) = g·σ(2z), the form without cancellation for negative g.
template <typename Real>
TH_DEVICE Real gelu_tanh(Real gate) {
  const Real inner = Real(0.79788456080286535588) * (gate + Real(0.044715) * gate * gate * gate);
  return gate * sigmoid(Real(2) * inner);
}

/// Comparisons are written so that a NaN gate or up stays NaN.
template <typename Real>
TH_DEVICE Real swiglu_clamped(Real gate, Real up, const ActivationConstants& constants) {
  const Real limit = Real(constants.limit);
  const Real clamped_gate = limit < gate ? limit : gate;
  const Real clamped_up = limit < up ? limit : up < -limit ? -limit : up;
  return clamped_gate * sigmoid(Real(constants.alpha) * clamped_gate) * (clamped_up + Real(constants.up_offset));
}

template <typename Real>
TH_DEVICE Real soft_limit(Real x, Real limit) {
  return limit * math::tanh(x / limit);
}

template <typename Real>
TH_DEVICE Real activate(ActivationCode kind, Real gate, Real up, const ActivationConstants& constants) {
  switch (kind) {
    case ActivationCode::silu: return gate * sigmoid(gate) * up;
    case ActivationCode::gelu_tanh: return gelu_tanh(gate) * up;
    case ActivationCode::swiglu_clamped: return swiglu_clamped(gate, up, constants);
    case ActivationCode::situ:
      return soft_limit(gate, Real(constants.alpha)) * sigmoid(gate) * soft_limit(up, Real(constants.limit));
    case ActivationCode::relu2: return gate < Real(0) ? Real(0) : gate * gate;
  }
  return Real(0);
}

/// Decodes the low 4 bits of `code`. Exponent and fraction move to their places in a float, which has a larger bias.
/// One exact multiplication makes up for the bias, subnormal values included.
TH_DEVICE float e2m1_to_float(u32 code) {
  return convert::bits_float(((code & 0x8U) << 28) | ((code & 0x7U) << 22)) * convert::bits_float(253U << 23);
}

/// The same for the low 8 bits; 0x7F and 0xFF are NaN.
TH_DEVICE float e4m3_to_float(u32 code) {
  if ((code & 0x7FU) == 0x7FU) {
    return convert::bits_float(0x7FC00000U);
  }
  return convert::bits_float(((code & 0x80U) << 24) | ((code & 0x7FU) << 20)) * convert::bits_float(247U << 23);
}

/// Byte offset of scale (row, column) of an NVFP4 tensor with `columns` scales a row; see ScaleLayout.
TH_DEVICE u64 scale_offset(bool blocked, u32 row, u32 column, u32 columns) {
  if (!blocked) {
    return static_cast<u64>(row) * columns + column;
  }
  const u64 tile = static_cast<u64>(row / 128) * ((columns + 3) / 4) + column / 4;
  return tile * 512 + (row % 32) * 16 + row % 128 / 32 * 4 + column % 4;
}

/// The value at `address`, 1 when it is null: a tensor's global scale.
TH_DEVICE float global_scale(u64 address) { return address == 0 ? 1.0F : Global<float>{address}.load(); }

}  // namespace thresher::strategies::gemm::definition
