#include "thresher/dual_gemm.hpp"

namespace thresher {

std::string_view name(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::silu: return "silu";
    case ActivationKind::gelu_tanh: return "gelu_tanh";
    case ActivationKind::swiglu_clamped: return "swiglu_clamped";
  }
  return "unknown";
}

std::string_view name(Numerics numerics) noexcept { return numerics == Numerics::exact ? "exact" : "fast"; }

}  // namespace thresher
