#pragma once
/// MXFP4, which files hold: values in e2m1, of which 32 along K share one power of two (E8M0), and no global scale.
/// Products are given it as a format that holds it exactly.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Values along K that share one exponent, and the bytes that they take.
inline constexpr std::int64_t mxfp4_block = 32;
inline constexpr std::int64_t mxfp4_block_bytes = mxfp4_block / 2;

/// An owned MXFP4 matrix [rows, k]: element = e2m1 × 2^(exponent − 127).
struct Mxfp4Matrix {
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::vector<std::uint8_t> values;     ///< [rows, k/2], low nibble first
  std::vector<std::uint8_t> exponents;  ///< [rows, k/32]
};

/// Quantises a floating-point matrix [rows, k] as the OCP Microscaling specification does: the exponent of 32 values is
/// that of the largest power of two that is not above their largest magnitude, less 2, which is e2m1's greatest, and at
/// least −127 (of zeros too); value = e2m1(x / 2^exponent), to nearest even, saturating. Throws Error(invalid_argument)
/// naming `role` when K is not a multiple of 32, and the element when it is NaN or Inf.
[[nodiscard]] Mxfp4Matrix quantize_mxfp4(const Tensor& matrix, std::string_view role);

/// MXFP4 matrices as products take them, exactly: in nvfp4, each exponent as two scales in e4m3, which has 18 powers of
/// two, under a global scale of the matrix; where the exponents of a matrix are further apart, all of them in bf16.
struct HeldMxfp4 {
  Format format = Format::nvfp4;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;     ///< e4m3, one for 16 values, row-major; none of bf16
  std::vector<float> global_scales;  ///< one for each matrix; none of bf16
  unsigned span = 0;                 ///< how far the exponents of a matrix are apart at the most
};

/// Of as many matrices of one size as `matrices`, two codes a byte, the low half first, and an exponent for 16 bytes.
/// Throws Error(invalid_argument) naming `exponents_title` for an exponent that bf16 does not hold, or NaN (255).
[[nodiscard]] HeldMxfp4 hold_mxfp4(std::vector<std::byte> codes, std::span<const std::byte> exponents,
                                   std::size_t matrices, std::string_view exponents_title);

/// MXFP4 that is held as nvfp4, in bf16, exactly: a global scale for each matrix.
[[nodiscard]] std::vector<std::byte> widened_mxfp4(std::span<const std::byte> codes, std::span<const std::byte> scales,
                                                   std::span<const float> global_scales);

/// Numerics fast, which folds values and scales of nvfp4 into e4m3, rounds no weight.
[[nodiscard]] bool folds_mxfp4_exactly(Format held, unsigned span);

/// "bf16", and of MXFP4 ("mxfp4 as nvfp4, exact in both numerics") which numerics are exact; `span` is that of MXFP4.
[[nodiscard]] std::string stored_as(Format format, std::optional<unsigned> span);

/// Where one is in nvfp4 and the other had to be in bf16, MXFP4 both, the former becomes what the latter is.
template <class First, class Second>
void hold_alike(First& first, Second& second) {
  if (first.is_mxfp4() && second.is_mxfp4() && first.format() != second.format()) {
    first.format() == Format::nvfp4 ? first.widen() : second.widen();
  }
}

}  // namespace thresher::formats
