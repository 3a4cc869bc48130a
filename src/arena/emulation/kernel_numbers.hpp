#pragma once
/// A kernel configuration's numbers and activation in the public words.
#include "kernels/dual_gemm/config.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

inline Format format_of(kernels::dual_gemm::Number number) {
  using kernels::dual_gemm::Number;
  return number == Number::fp16 ? Format::fp16 : number == Number::bf16 ? Format::bf16 : Format::fp32;
}

inline ActivationKind activation_of(kernels::dual_gemm::ActivationCode code) {
  using kernels::dual_gemm::ActivationCode;
  return code == ActivationCode::silu        ? ActivationKind::silu
         : code == ActivationCode::gelu_tanh ? ActivationKind::gelu_tanh
                                             : ActivationKind::swiglu_clamped;
}

}  // namespace thresher::arena
