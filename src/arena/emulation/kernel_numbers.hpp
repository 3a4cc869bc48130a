#pragma once
/// A kernel configuration's numbers and activation in the public words.
#include "strategies/dual_gemm/fused/config.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

inline Format format_of(strategies::dual_gemm::fused::Number number) {
  using strategies::dual_gemm::fused::Number;
  return number == Number::fp16 ? Format::fp16 : number == Number::bf16 ? Format::bf16 : Format::fp32;
}

inline ActivationKind activation_of(strategies::dual_gemm::fused::ActivationCode code) {
  using strategies::dual_gemm::fused::ActivationCode;
  return code == ActivationCode::silu        ? ActivationKind::silu
         : code == ActivationCode::gelu_tanh ? ActivationKind::gelu_tanh
                                             : ActivationKind::swiglu_clamped;
}

}  // namespace thresher::arena
