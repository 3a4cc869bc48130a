#pragma once
/// The vocabulary's type of a number that a configuration names.
#include "kernels/dual_gemm/config.hpp"
#include "machine/numbers.hpp"

namespace thresher::kernels::dual_gemm {

template <Number number>
struct NumberType;
template <>
struct NumberType<Number::fp16> {
  using type = machine::Half;
};
template <>
struct NumberType<Number::bf16> {
  using type = machine::BFloat16;
};
template <>
struct NumberType<Number::fp32> {
  using type = float;
};

}  // namespace thresher::kernels::dual_gemm
