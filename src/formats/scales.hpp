#pragma once
/// The position of a tensor's scales.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "thresher/tensor.hpp"

namespace thresher::formats {

/// Elements along K that share one scale.
inline constexpr std::int64_t scale_block = 16;

/// The index of the scale that multiplies the value at `row` and `column` of a matrix.
[[nodiscard]] std::int64_t scale_index(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept;

/// The scale of one value of a matrix in fp8_row or fp8_block.
[[nodiscard]] float fp8_scale(const Tensor& matrix, std::int64_t row, std::int64_t column) noexcept;

/// Byte offset of the scale of `row` and of block `column` (of `columns` = K/16) of an NVFP4 tensor in `layout`,
/// row-major or blocked.
constexpr std::size_t scale_offset(std::int64_t row, std::int64_t column, std::int64_t columns,
                                   ScaleLayout layout) noexcept {
  if (layout == ScaleLayout::row_major) {
    return static_cast<std::size_t>(row * columns + column);
  }
  const std::int64_t tile = row / 128 * ((columns + 3) / 4) + column / 4;
  return static_cast<std::size_t>(tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4);
}

/// The scales of an NVFP4 tensor [rows, k] in another layout, padding zero. Throws Error(invalid_argument) when
/// `scales` does not have scale_bytes(rows, k, from) bytes. Throws too when padding of a blocked source is not zero,
/// which shows that it is not in that layout.
[[nodiscard]] std::vector<std::uint8_t> convert_scales(std::span<const std::uint8_t> scales, std::int64_t rows,
                                                       std::int64_t k, ScaleLayout from, ScaleLayout to);

}  // namespace thresher::formats
