#pragma once
/// The words of configurations for the public ones.
#include "machine/tensor_map.hpp"
#include "strategies/gemm/device/words.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::strategies::gemm {

/// The number that values of a format are in a kernel: those of NVFP4 fp16, with their scales in.
constexpr Number number_of(Format format) {
  switch (format_traits(format).product_format) {
    case Format::bf16: return Number::bf16;
    case Format::fp32: return Number::fp32;
    case Format::fp8_e4m3: return Number::e4m3;
    default: return Number::fp16;
  }
}

constexpr Scaling scaling_of(Format format) {
  switch (format) {
    case Format::fp8_tensor: return Scaling::tensor;
    case Format::fp8_row: return Scaling::row;
    case Format::fp8_block: return Scaling::block;
    default: return Scaling::none;
  }
}

constexpr Format format_of(Number number, Scaling scaling = Scaling::none) {
  switch (number) {
    case Number::bf16: return Format::bf16;
    case Number::fp32: return Format::fp32;
    case Number::e4m3:
      return scaling == Scaling::block ? Format::fp8_block
             : scaling == Scaling::row ? Format::fp8_row
                                       : Format::fp8_tensor;
    case Number::fp16: break;
  }
  return Format::fp16;
}

/// Returns the type that TMA has for the number.
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

/// The formats of a problem's operands.
struct OperandFormats {
  Format tokens;
  Format weights;
};

constexpr bool is_16_bit(Format format) { return format == Format::fp16 || format == Format::bf16; }
/// FP8 whose scales multiply finished sums.
constexpr bool is_plain_fp8(Format format) { return format == Format::fp8_tensor || format == Format::fp8_row; }
constexpr bool is_fp8(Format format) { return is_plain_fp8(format) || format == Format::fp8_block; }

}  // namespace thresher::strategies::gemm
