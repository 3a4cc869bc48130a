#pragma once
/// The words of configurations for the public ones.
#include "machine/tensor_map.hpp"
#include "strategies/dual_gemm/device/words.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::dual_gemm {

/// The number that fp16, bf16 or fp32 is in a kernel.
constexpr Number number_of(Format format) {
  return format == Format::bf16 ? Number::bf16 : format == Format::fp32 ? Number::fp32 : Number::fp16;
}

constexpr Format format_of(Number number) {
  return number == Number::bf16 ? Format::bf16 : number == Number::fp32 ? Format::fp32 : Format::fp16;
}

/// As the copy engine has it.
constexpr machine::ElementType element_type(Number number) {
  switch (number) {
    case Number::fp16: return machine::ElementType::fp16;
    case Number::bf16: return machine::ElementType::bf16;
    case Number::e4m3: return machine::ElementType::uint8;
    case Number::fp32: break;
  }
  return machine::ElementType::fp32;
}

/// Both list the same activations in the same order.
constexpr ActivationCode code_of(ActivationKind kind) { return static_cast<ActivationCode>(kind); }
constexpr ActivationKind kind_of(ActivationCode code) { return static_cast<ActivationKind>(code); }

/// Of a problem.
struct OperandFormats {
  Format tokens;
  Format weights;
};

constexpr bool is_16_bit(Format format) { return format == Format::fp16 || format == Format::bf16; }

}  // namespace thresher::strategies::dual_gemm
