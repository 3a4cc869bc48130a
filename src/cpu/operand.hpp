#pragma once
/// Operands in the form that oneDNN multiplies: blocks of any format converted to bf16 planes or float32.
///
/// In bf16 an operand is a sum of planes that represents it exactly. bf16, NVFP4 (value × scale has at most 6
/// significant bits) and e4m3 (4) have one plane. fp16 (11 significant bits) has a high and a low one. Global scales
/// are not included: they multiply the finished product. Values with per-row or per-block float32 scales are not exact
/// in bf16.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "cpu/product.hpp"
#include "thresher/tensor.hpp"

namespace thresher::cpu {

/// The rows of a matrix that an operand has, and their order.
struct Rows {
  std::int64_t step = 1;  ///< the distance of consecutive rows, from the first on
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  ///< the maximum number of rows
  std::span<const std::int64_t> listed{};  ///< used instead if `is_listed`; a negative entry is a row of zeros
  bool is_listed = false;

  [[nodiscard]] std::int64_t count(const Tensor& matrix) const noexcept {
    return is_listed ? std::ssize(listed) : std::min(most, (matrix.shape[0] + step - 1) / step);
  }
  [[nodiscard]] std::int64_t operator[](std::int64_t row) const noexcept {
    return is_listed ? listed[static_cast<std::size_t>(row)] : row * step;
  }
};

/// A rectangle of an operand [rows, K]. The written block has `rows` rows of `padded_depth` elements each: zeros from
/// `depth` on, and in rows beyond the operand's end.
struct Slice {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t first_k;
  std::int64_t depth;  ///< a multiple of 16 for NVFP4
  std::int64_t padded_depth;
  Rows of{};  ///< the matrix
};

/// The properties that decide whether products of bf16 planes are exact; see exact_in_bf16.
struct ExponentRange {
  /// Biased exponent of the smallest non-zero magnitude, as in bf16. 0 is a subnormal, 255 means no value or only Inf,
  /// NaN.
  int smallest_exponent = 255;
  bool infinite = false;

  void include(const ExponentRange& other) noexcept;
};

/// bf16 planes of `format`: 1, or 2 for fp16.
[[nodiscard]] int bf16_planes(Format format) noexcept;

/// Whether operands of this format have bf16 planes; others are multiplied in float32, value × scale rounded once.
[[nodiscard]] bool has_bf16_planes(Format format) noexcept;
/// The product type for these formats: native_product_type, or float32 if one has no bf16 planes.
[[nodiscard]] ProductType product_type_of(Format a, Format b);

/// Writes the planes of a slice, each dense; `low` is used for fp16 only. The returned range covers fp16 (Inf only) and
/// bf16, and stays empty for NVFP4 and FP8.
ExponentRange to_bf16(const Tensor& operand, const Slice& slice, std::uint16_t* high, std::uint16_t* low);

/// Prefetches the slice's bytes into the core's cache.
void prefetch(const Tensor& operand, const Slice& slice) noexcept;

/// Writes the slice as dense float32.
void to_float32(const Tensor& operand, const Slice& slice, float* out);

/// Whether there are values of these formats for which exact_in_bf16 is false.
[[nodiscard]] bool may_be_inexact_in_bf16(Format a, Format b) noexcept;

/// Whether bf16 matrix instructions give the result of float32 arithmetic on operands with these ranges. They flush
/// subnormal inputs and results to zero. True unless
/// - an accumulation could produce a subnormal. Every value is a multiple of its last place, so every partial sum is
///   zero or at least the product of the two smallest last places; that product must be a normal number;
/// - the other operand of an fp16 one has an Inf, which times a zero in the low plane would give a NaN.
[[nodiscard]] bool exact_in_bf16(Format a, const ExponentRange& a_range, Format b,
                                 const ExponentRange& b_range) noexcept;

}  // namespace thresher::cpu
