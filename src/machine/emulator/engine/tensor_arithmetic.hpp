#pragma once
/// One output element of one tcgen05 instruction, bit for bit as published models of a B200's tensor cores compute it.
///
/// The model is published with the measurements it was fitted to (sf-tensor/tcgen05, MODEL.md); we have not confirmed
/// it on a GPU. A raw exponent is the encoded one without its bias; that of a subnormal is the smallest normal's. Terms
/// are truncated towards zero to a common unit and summed exactly; the sum is rounded towards zero to float32.
#include <array>
#include <cstdint>

#include "machine/emulator/engine/launch.hpp"

namespace thresher::emulator {

/// An operand's element as an integer and a power of two: value = mantissa · 2^(raw − fraction bits of its format).
struct TensorElement {
  std::int32_t mantissa = 0;
  std::int16_t raw = 0;
  bool is_nan = false;
  bool is_infinite = false;
};

struct TensorFormat {
  int fraction_bits;
  TensorElement (*decode)(std::uint32_t bits);
};
[[nodiscard]] TensorFormat tensor_fp16();
[[nodiscard]] TensorFormat tensor_bf16();
[[nodiscard]] TensorFormat tensor_e4m3();

/// Kinds f16 and f8f6f4: Σ a[i]·b[i] + c, all in one window of 25 bits below the maximum raw exponent.
[[nodiscard]] std::uint32_t tensor_dot(const TensorElement* a, const TensorElement* b, std::uint32_t count,
                                       int fraction_bits, std::uint32_t c);

inline constexpr std::uint32_t nvfp4_k = 64;
inline constexpr std::uint32_t nvfp4_scales = 4;

/// Elements that are summed exactly, and the number of such groups.
inline constexpr std::uint32_t nvfp4_group = 4;
inline constexpr std::uint32_t nvfp4_groups = nvfp4_k / nvfp4_group;
/// The position of an element in a row: the first of all groups before the second of all, so that groups are summed in
/// parallel.
constexpr std::uint32_t nvfp4_place(std::uint32_t k) { return k % nvfp4_group * nvfp4_groups + k / nvfp4_group; }

/// 64 values of e2m1 and their four UE4M3 scales, decoded once for many products.
struct Nvfp4Row {
  std::array<std::int16_t, nvfp4_k> halves;  ///< value · 2, by position
  std::array<std::int16_t, nvfp4_k> raw;     ///< by position; far below 0 where the value is zero
  std::array<std::int16_t, nvfp4_scales> mantissa;
  std::array<std::int16_t, nvfp4_scales> exponent;  ///< raw; scale = mantissa · 2^(exponent − 3)
  bool has_nan_scale;
};
/// Two values per byte, the low one first. The sign of a scale is ignored, as in hardware.
[[nodiscard]] Nvfp4Row nvfp4_row(const std::uint8_t* codes, const std::uint8_t* scales);

/// Kind mxf4nvf4 with one scale per 16. Groups of four products are summed exactly before they are truncated. If c is
/// at least as large as every product, the 16 that share scales are.
[[nodiscard]] std::uint32_t nvfp4_dot(const Nvfp4Row& a, const Nvfp4Row& b, std::uint32_t c);

/// The arithmetic of one element of D.
struct TensorArithmetic {
  decltype(&tensor_dot) dot;
  decltype(&nvfp4_dot) scaled_dot;
};
[[nodiscard]] TensorArithmetic tensor_arithmetic(TensorSums sums);

}  // namespace thresher::emulator
