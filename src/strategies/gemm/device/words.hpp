#pragma once
/// The words in which every configuration of a product's kernel says what its problem is.
#include "machine/types.hpp"

namespace thresher::strategies::gemm {

using machine::i64;
using machine::u16;
using machine::u32;
using machine::u64;
using machine::u8;

enum class Number : u8 { fp16, bf16, fp32, e4m3 };

TH_DEVICE constexpr int element_bytes(Number number) {
  return number == Number::fp32 ? 4 : number == Number::e4m3 ? 1 : 2;
}

/// One float32 scale of an operand multiplies all of it, a row, or a block. A block is 128 along K, of one token or of
/// 128 rows of weights.
enum class Scaling : u8 { none, tensor, row, block };
inline constexpr int scale_block = 128;

enum class Numerics : u8 {
  exact,  ///< NVFP4 enters the tensor cores as fp16 or bf16, exactly; sums of FP8 are accumulated in float32
  fast,   ///< NVFP4 is rounded to e4m3, at twice the rate; sums of FP8 are left to the tensor cores
};

/// The values of thresher::ActivationKind. A kernel of one matrix applies relu2, and for every other value nothing.
enum class ActivationCode : u8 { silu, gelu_tanh, swiglu_clamped, situ, relu2 };

}  // namespace thresher::strategies::gemm
