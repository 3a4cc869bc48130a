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

/// Two neighbouring outputs as they are stored; those in FP8 are float32 until their scale is known.
template <Number output>
TH_DEVICE auto output_pair(const float (&values)[2]) {
  if constexpr (output == Number::fp32 || output == Number::e4m3) {
    return machine::Vector<float, 2>{{values[0], values[1]}};
  } else {
    return machine::convert::pack<typename NumberType<output>::type>(values[0], values[1]);
  }
}

/// A float32 rounded to 16 bits, or as it is.
template <typename T>
TH_DEVICE T rounded(float value) {
  if constexpr (machine::is_same<T, machine::Half>) {
    return machine::convert::to_half(value);
  } else if constexpr (machine::is_same<T, machine::BFloat16>) {
    return machine::convert::to_bfloat16(value);
  } else {
    return value;
  }
}

}  // namespace thresher::strategies::gemm
