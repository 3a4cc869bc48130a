#pragma once
/// MXFP4, a file format: e2m1 values, of which 32 along K share one power of two (E8M0), without a global scale.
/// Products take it as another format that holds it exactly.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Values along K that share one exponent, and their bytes.
inline constexpr std::int64_t mxfp4_block = 32;
inline constexpr std::int64_t mxfp4_block_bytes = mxfp4_block / 2;

/// An owned MXFP4 matrix [rows, k]: element = e2m1 × 2^(exponent − 127).
struct Mxfp4Matrix {
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::vector<std::uint8_t> values;     ///< [rows, k/2], low nibble first
  std::vector<std::uint8_t> exponents;  ///< [rows, k/32]
};

/// Quantizes a floating-point matrix [rows, k] as the OCP Microscaling specification does. The exponent of 32 values is
/// that of the largest power of two not above their maximum magnitude, minus 2, the greatest exponent of e2m1. It is at
/// least −127 (also for zeros). value = e2m1(x / 2^exponent), to nearest even, saturating. Throws
/// Error(invalid_argument) naming `role` when K is not a multiple of 32, and the element when it is NaN or Inf.
[[nodiscard]] Mxfp4Matrix quantize_mxfp4(const Tensor& matrix, std::string_view role);

/// MXFP4 matrices as products take them, exactly. In nvfp4, each exponent becomes two e4m3 scales under a global scale
/// of the matrix; e4m3 has 18 powers of two. If the exponents of a matrix span more, all matrices become bf16.
struct HeldMxfp4 {
  Format format = Format::nvfp4;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;     ///< e4m3, one per 16 values, row-major; empty for bf16
  std::vector<float> global_scales;  ///< one per matrix; empty for bf16
  unsigned span = 0;                 ///< the maximum distance of a matrix's exponents
};

/// From as many matrices of one size as `matrices`: two values per byte, the low half first, and one exponent per 16
/// bytes. Throws Error(invalid_argument) naming `exponents_title` for an exponent that bf16 cannot represent, or NaN
/// (255).
[[nodiscard]] HeldMxfp4 hold_mxfp4(std::vector<std::byte> codes, std::span<const std::byte> exponents,
                                   std::size_t matrices, std::string_view exponents_title);

/// MXFP4 that is held as nvfp4, dequantized exactly to bf16, with a global scale per matrix.
[[nodiscard]] std::vector<std::byte> widened_mxfp4(std::span<const std::byte> codes, std::span<const std::byte> scales,
                                                   std::span<const float> global_scales);

/// Whether numerics fast, which quantizes values and scales of nvfp4 to e4m3, rounds no weight.
[[nodiscard]] bool folds_mxfp4_exactly(Format held, unsigned span);

/// "bf16", or for MXFP4 ("mxfp4 as nvfp4, exact in both numerics") the exact numerics; `span` is that of MXFP4.
[[nodiscard]] std::string stored_as(Format format, std::optional<unsigned> span);

/// If one of two MXFP4 operands is held in nvfp4 and the other had to be bf16, the former becomes bf16 too.
template <class First, class Second>
void hold_alike(First& first, Second& second) {
  if (first.is_mxfp4() && second.is_mxfp4() && first.format() != second.format()) {
    first.format() == Format::nvfp4 ? first.widen() : second.widen();
  }
}

}  // namespace thresher::formats
