#pragma once
/// The vocabulary's type of a number that a configuration names.
#include "machine/numbers.hpp"
#include "strategies/gemm/device/words.hpp"

namespace thresher::strategies::gemm {

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
template <>
struct NumberType<Number::e4m3> {
  using type = machine::E4M3;
};

}  // namespace thresher::strategies::gemm
